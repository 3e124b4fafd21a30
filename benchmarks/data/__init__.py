"""What feeds a training: deliveries, augmentation, loaders and files."""
