"""A network, its loss and its optimizer.

What the targets are, and from which dataset, is none of its business.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from lightning import LightningModule
from lightning.pytorch.cli import LRSchedulerCallable, OptimizerCallable
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor
from torch.optim.lr_scheduler import ReduceLROnPlateau

from core.compat import attached_trainer, end_restart_at_epoch_end, look_for_gpus_once
from core.errors import InputError
from core.randomness import generator
from lightning_modules.compiling import check_compiler
from lightning_modules.mean_loss import MeanLoss
from lightning_modules.networks import Network
from lightning_modules.resuming import check_architecture, had_stopped, stopped_early
from lightning_modules.schedules import with_schedule
from metrics import every_metric, mean_metrics


class Prediction(NamedTuple):
    """What evaluation steps return, for callbacks to look at."""

    probs: Tensor
    target_probs: Tensor
    index: Tensor  # pyright: ignore[reportIncompatibleMethodOverride]  # hides tuple.index


class AnnotatorClassifier(LightningModule):
    """Trains with cross-entropy on whatever the delivery gives (class numbers or distributions),
    and is judged against annotators.
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        num_classes: int,
        network: Callable[[tuple[int, ...], int], Network],
        optimizer: OptimizerCallable = torch.optim.Adam,
        scheduler: LRSchedulerCallable | None = None,
        seed: int = 0,
        channels_last: bool = False,
        monitor: Literal["val/soft_nll", "val/hard_nll"] = "val/soft_nll",
        compile: bool = False,
        ordinal: bool = False,
    ):
        """
        Args:
            input_shape: Linked from the datamodule.
            num_classes: Linked from the datamodule.
            network: A class of lightning_modules.networks by name, with its own options.
            optimizer: A class of torch.optim by name.
            scheduler: A class of torch.optim.lr_scheduler, or CosineToEnd, stepped once per epoch;
                plateaus watch val/loss.
            seed: Of the initial weights and of dropout. Linked from seed_everything.
            channels_last: Memory format of image batches; faster for convolutions on CPUs and
                recent GPUs. Packs train in a format of their own.
            monitor: The validation score that is logged as val/loss, by which the best checkpoint
                is chosen and which plateaus watch: against annotators' distributions, or against
                the majority class, which is what a model of majority votes is trained on.
            compile: Let torch.compile make training steps faster, after a first step that takes
                much longer. Evaluation, probes and checkpoints are those of the plain network. It
                needs a C++ compiler.
            ordinal: Whether scores of ordered classes join in a test. Linked from the datamodule.
        """
        super().__init__()
        # initial weights depend on the seed alone, not on what was drawn before
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = network(input_shape, num_classes)
        self.memory_format = torch.channels_last if channels_last else torch.preserve_format
        self.network.to(memory_format=self.memory_format)
        # A function and no module, so that the network remains the one owner of its weights and
        # checkpoints keep their names.
        self.compiled = torch.compile(self.network.forward) if compile else None
        self.optimizer, self.scheduler = optimizer, scheduler
        self.seed, self.monitor = seed, monitor
        self.val_loss: float | None = None  # of the checkpoint that was loaded
        self.had_stopped = False  # the run whose checkpoint was loaded, and its latest scores
        self.known_scores: dict[str, Tensor] = {}
        # of the latest validation, until plateaus have seen it
        self._plateau_score: Tensor | None = None
        self.train_loss = MeanLoss()
        self.val_metrics = mean_metrics("val/")
        self.test_metrics = every_metric("test/", ordinal)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits [B, K]; in training by the compiled network, where there is one."""
        network = self.compiled if self.compiled and self.training else self.network
        return network(self.prepared(inputs))

    def prepared(self, inputs: Tensor) -> Tensor:
        """Inputs in the precision and memory format of the weights."""
        return inputs.to(self.dtype, memory_format=self.memory_format)

    def on_fit_start(self) -> None:
        """Refuse to compile where there is no compiler, before anything is trained."""
        if self.compiled:
            check_compiler()
        look_for_gpus_once()

    def on_train_batch_start(self, batch, batch_idx: int) -> None:
        """Make dropout a function of (seed, step, rank), so that a run continues exactly."""
        draw = generator(self.seed, "dropout", self.global_step, self.global_rank)
        seed = int(draw.integers(2**63))
        # torch.manual_seed would cost a fifth of a small network's step
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def training_step(self, batch, batch_idx: int) -> Tensor:
        """Cross-entropy of a batch with its targets, weighted for DDP."""
        # the mean of no items would not be a number
        reduction = "mean" if len(batch.inputs) else "sum"
        loss = F.cross_entropy(self(batch.inputs), batch.targets, reduction=reduction)
        if not self.train_loss.update_called:  # the epoch's first; it is read at the epoch's end
            self.log("train/loss", self.train_loss, on_step=False, on_epoch=True)
        items = len(batch.inputs)
        self.train_loss.update(loss, items)
        ranks = self.trainer.world_size
        return loss if ranks == 1 else loss * (items * ranks / self._items_of_all(items, batch_idx))

    def _items_of_all(self, items: int, batch_idx: int) -> Tensor | int:
        """The items of a batch over all ranks, by which DDP's average over ranks becomes one over
        items: as the order of our loaders says it, or as others' ranks say together.
        """
        said = getattr(self.trainer.train_dataloader, "items_of_batch", None)
        if said is not None:
            return said(batch_idx)
        own = torch.tensor(float(items), device=self.device)
        return self.trainer.strategy.reduce(own, reduce_op="sum")

    def predict(self, batch) -> Prediction:
        """Probabilities in float64: a confident model's float32 ones round to 0, and its log score
        to infinity. Mixed precision is for training steps alone, so that validations, tests and
        probes say the same of the same weights.
        """
        return Prediction(self.logits(batch.inputs).softmax(-1), batch.targets, batch.index)

    def logits(self, inputs: Tensor) -> Tensor:
        """What `predict` makes probabilities of, in float64 and without mixed precision."""
        with torch.autocast(self.device.type, enabled=False):
            return self(inputs).double()

    # Lightning hands callbacks whatever a step returns, though it declares tensors and mappings.
    def validation_step(self, batch, batch_idx: int) -> Prediction:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Predict a batch and count it towards the validation scores."""
        prediction = self.predict(batch)
        self.val_metrics.update(prediction.probs, prediction.target_probs)
        return prediction

    def on_validation_epoch_end(self) -> None:
        """Log the scores, and the one that is watched as val/loss."""
        scores = self.val_metrics.compute()
        self.log("val/loss", scores[self.monitor], prog_bar=True, sync_dist=True)
        self._plateau_score = None if self.trainer.sanity_checking else scores[self.monitor]
        self.log_dict(scores, sync_dist=True)
        self.val_metrics.reset()

    def test_step(self, batch, batch_idx: int) -> Prediction:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Predict a batch and count it towards the test scores."""
        prediction = self.predict(batch)
        self.test_metrics.update(prediction.probs, prediction.target_probs)
        return prediction

    def on_test_epoch_end(self) -> None:
        """Log the test scores."""
        self.log_dict(self.test_metrics.compute(), sync_dist=True)
        self.test_metrics.reset()

    def predict_step(self, batch, batch_idx: int) -> Prediction:
        """Predict a batch."""
        return self.predict(batch)

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """The optimizer over all weights, with its schedule where one is named."""
        optimizer = self.optimizer(self.network.parameters())
        if self.scheduler is None:
            return optimizer
        return with_schedule(optimizer, self.scheduler(optimizer), self.trainer.max_epochs or 1)

    def on_train_epoch_end(self) -> None:
        """Step schedules that watch a score: Lightning would do it after the epoch's checkpoint,
        and a run that is continued from that would miss the step.
        """
        score, self._plateau_score = self._plateau_score, None
        for scheduler in (config.scheduler for config in self.trainer.lr_scheduler_configs):
            if isinstance(scheduler, ReduceLROnPlateau) and score is not None:
                scheduler.step(score.item())
        self.trainer.should_stop |= self._has_diverged()  # nothing comes after that, as in a pack

    def _has_diverged(self) -> bool:
        scores = self.trainer.callback_metrics
        losses = [scores[name] for name in ("train/loss", "val/loss") if name in scores]
        return not all(loss.isfinite() for loss in losses)

    def lr_scheduler_step(self, scheduler, metric: Any) -> None:
        """Step all schedules but plateaus, whose turn `on_train_epoch_end` is."""
        if not isinstance(scheduler, ReduceLROnPlateau):
            super().lr_scheduler_step(scheduler, metric)

    def on_train_start(self) -> None:
        """Mend what Lightning forgets of a run that is continued from the end of an epoch."""
        self._check_same_start()
        # early stopping had spoken: without this it would train for an epoch more
        self.trainer.should_stop |= self.had_stopped
        # for who looks at them after an epoch without validation
        self.trainer.callback_metrics.update(self.known_scores)
        end_restart_at_epoch_end(self.trainer.fit_loop)

    def _check_same_start(self) -> None:
        """All processes found the same checkpoint; one that did not would train on other items, and
        nothing would say so.
        """
        first = self.trainer.strategy.broadcast(self.global_step)
        if self.global_step != first:
            raise InputError(
                f"this process would continue from step {self.global_step} and the first one from "
                f"step {first}; all must see the same folder of runs."
            )

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep whether the training has ended by its own rule, and its latest scores."""
        callbacks = self.trainer.callbacks  # pyright: ignore[reportAttributeAccessIssue]
        by_rule = self.trainer.should_stop and (stopped_early(callbacks) or self._has_diverged())
        checkpoint |= {
            "stopped_by_rule": by_rule,
            "known_scores": dict(self.trainer.callback_metrics),
        }
        if "val/loss" in self.trainer.callback_metrics:
            checkpoint["val_loss"] = self.trainer.callback_metrics["val/loss"].item()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take over what `on_save_checkpoint` kept; refuse another architecture's weights."""
        trainer = attached_trainer(self)
        if trainer is not None and trainer.precision == "64-true":
            # Lightning does so only after it has loaded the weights, which would round them to
            # single precision
            self.double()
        self.val_loss = checkpoint.get("val_loss")
        self.had_stopped = had_stopped(checkpoint)
        self.known_scores = checkpoint.get("known_scores", {})
        check_architecture(self, checkpoint["state_dict"])
