"""A station's half: it trains what it gets on its own images. It knows nothing of a guard."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from guarded_app.task import Net, accuracy, samples, train

app = ClientApp()


@app.train()
def fit(message: Message, context: Context) -> Message:
    """One epoch."""
    net = Net()
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    images, labels = samples(context.node_id % 1000)
    loss = train(net, images, labels, message.content["config"]["rate"])
    metrics = MetricRecord({"loss": loss, "num-examples": len(images)})
    return Message(
        RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics}), reply_to=message
    )


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Accuracy on images it did not train on."""
    net = Net()
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    images, labels = samples(context.node_id % 1000 + 1000)
    metrics = MetricRecord({"accuracy": accuracy(net, images, labels), "num-examples": len(images)})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)
