"""From votes to a model whose uncertainty is compared with people's, in one page.

python examples/votes_to_uncertainty.py        a few seconds on a CPU, nothing is downloaded
"""

import torch
from lightning import Trainer

from datamodules import (
    Digits,
    MajorityVote,
    Multipass,
    SoftLabels,
    StochasticLabelSampling,
    VoteTable,
)
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import SimpleFFN
from metrics import functional

# 1. Votes: three images, three classes, five annotators. They agree, lean, and are torn.
votes = VoteTable(counts=[[5, 0, 0], [3, 2, 0], [1, 2, 2]])
print("annotators' entropy:", votes.entropy.round(2).tolist())

# 2. Delivery: the same votes reach the loss in different ways. Targets are a function of votes,
#    seed and epoch, so that a run can be repeated or continued exactly.
for delivery in (MajorityVote(), StochasticLabelSampling(), Multipass()):
    bound = delivery.bind(votes, seed=0)
    epochs = [bound.targets(epoch).tolist() for epoch in range(4)]
    print(f"{type(delivery).__name__}: classes of three images in four epochs {epochs}")
soft = SoftLabels().bind(votes, seed=0).targets(epoch=0)
print("SoftLabels: in every epoch", soft.double().round(decimals=2).tolist())

# 3. Training: real digits, some of them blended, with simulated annotators. In each epoch every
#    image has the label of one annotator, drawn anew.
data = Digits(delivery=StochasticLabelSampling(), batch_size=32, seed=0)
model = AnnotatorClassifier(data.input_shape, data.num_classes, SimpleFFN, seed=0)
trainer = Trainer(
    max_epochs=3,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, datamodule=data)

# 4. Judgement: test images against all their votes, beside a model that always says the same.
model.eval()
with torch.no_grad():
    batches = data.evaluation_batches(data.rows("test"), model.device)
    predictions = [model.predict(batch) for batch in batches]
probs = torch.cat([prediction.probs for prediction in predictions])
people = torch.cat([prediction.target_probs for prediction in predictions])
constant = people.mean(0).expand_as(people)
print("on test images, against simulated annotators:")
print(f"soft NLL: {functional.soft_nll(probs, people):.3f} nats", end=", ")
print(f"{functional.soft_nll(constant, people):.3f} for the best constant")
print(f"accuracy: {functional.hard_accuracy(probs, people):.3f}")
print(f"entropy correlation: {functional.entropy_correlation(probs, people):.3f}")
