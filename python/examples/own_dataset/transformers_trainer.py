"""The Trainer of Transformers over a dataset of your own, with a collator that pads.

pip install transformers accelerate torch && python transformers_trainer.py
"""

import tempfile

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed

import penstock


class Texts(torch.utils.data.Dataset):
    """Stands for yours: tokens of several lengths."""

    def __len__(self):
        return 48

    def __getitem__(self, i):
        return {"input_ids": torch.arange(3 + i % 5) % 11, "labels": i % 2}


def collate(samples):
    ids = torch.nn.utils.rnn.pad_sequence([s["input_ids"] for s in samples], batch_first=True)
    return {"input_ids": ids, "labels": torch.tensor([s["labels"] for s in samples])}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = torch.nn.Embedding(11, 8), torch.nn.Linear(8, 2)

    def forward(self, input_ids, labels):
        logits = self.head(self.embedding(input_ids).mean(1))
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


class Losses(TrainerCallback):
    def __init__(self):
        self.seen = []

    def on_log(self, args, state, control, logs=None, **_):
        if "loss" in logs:
            self.seen.append(logs["loss"])


def train(loader=penstock.DataLoader, epochs=2, workers=2):
    set_seed(0)

    class OwnTrainer(Trainer):
        def get_train_dataloader(self):
            # return DataLoader(self.train_dataset, batch_size=8, shuffle=True, collate_fn=self.data_collator, num_workers=workers)
            return loader(self.train_dataset, batch_size=8, shuffle=True, collate_fn=self.data_collator, num_workers=workers)

    losses = Losses()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, num_train_epochs=epochs, use_cpu=True, report_to=[], logging_steps=1, save_strategy="no", disable_tqdm=True, seed=0
        )
        OwnTrainer(Model(), arguments, collate, Texts(), callbacks=[losses]).train()
    return losses.seen


if __name__ == "__main__":
    print(train())
