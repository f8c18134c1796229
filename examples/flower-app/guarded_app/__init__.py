"""An ordinary Flower app: a plain CNN on images of its own."""
