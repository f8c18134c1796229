"""A Flower grid without network or processes: a message goes straight into the ClientApp.

The engine, the apps and their records are those of a deployment; only the carrier is not. Flower's messages
take the identity of their sender from the process they are made in; `InProcessGrid` sets it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from flwr.app import Context, Error, Message, RecordDict, UserConfig
from flwr.clientapp import ClientApp
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

_RUN: Final = 1
_SERVER: Final = 1
_FIRST: Final = 1_000
_RAISED: Final = 2  # Flower's code for a ClientApp that raised an exception

Answer = Callable[[Message, Context], Message]


class InProcessGrid(Grid):
    """Nodes with these configurations (and registered keys), all running one ClientApp in this process."""

    def __init__(
        self,
        app: ClientApp | Answer,
        configs: Sequence[UserConfig],
        *,
        keys: Sequence[bytes] = (),
    ) -> None:
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = _RUN, _SERVER, 1
        self._app = app
        self._keys = dict(zip(range(_FIRST, _FIRST + len(keys)), keys, strict=True))
        self._run = Run.create_empty(_RUN)
        self._contexts = {
            node: Context(run_id=_RUN, node_id=node, node_config=config, state=RecordDict(), run_config={})
            for node, config in enumerate(configs, _FIRST)
        }
        self._count = 0
        self._sent: dict[str, Message] = {}

    def set_run(self, run: Run) -> None:
        """Take part in another run."""
        self._run = run

    @property
    def run(self) -> Run:
        """The run."""
        return self._run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """A message to a node."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        """The nodes."""
        return list(self._contexts)

    def get_nodes(self) -> Iterable[NodeInfo]:
        """The nodes with their keys."""
        return [NodeInfo(node_id=node, public_key=self._keys.get(node, b"")) for node in self._contexts]

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Take messages; a node works when its reply is pulled."""
        names = []
        for message in messages:
            self._count += 1
            name = f"message {self._count}"
            message.metadata.__dict__["_message_id"] = name
            self._sent[name] = message
            names.append(name)
        return names

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """The replies to these messages."""
        return [self._answer(self._sent.pop(name)) for name in message_ids if name in self._sent]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Push, then pull."""
        return self.pull_messages(self.push_messages(messages))

    def _answer(self, message: Message) -> Message:
        try:
            return self._app(message, self._contexts[message.metadata.dst_node_id])
        except Exception as error:
            return Message(Error(_RAISED, f"{type(error).__name__}: {error}"), reply_to=message)
