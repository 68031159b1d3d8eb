"""A LightningModule and a dataset of your own.

pip install lightning && python lightning_trainer.py
"""

import lightning
import torch

import penstock


class Points(torch.utils.data.Dataset):
    """Stands for yours."""

    def __len__(self):
        return 60

    def __getitem__(self, i):
        x = torch.linspace(0, 1, 8) * (i % 7) + 0.1 * torch.rand(8)
        return x, x.sum()


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.losses = torch.nn.Linear(8, 1), []

    def training_step(self, batch, _):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.net(x).squeeze(1), y)
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.001)


def train(loader=penstock.DataLoader, epochs=2, workers=2):
    lightning.seed_everything(0, verbose=False)
    # loader = torch.utils.data.DataLoader(Points(), batch_size=8, shuffle=True, num_workers=workers)
    made = loader(Points(), batch_size=8, shuffle=True, num_workers=workers)
    model = Model()
    trainer = lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False
    )
    trainer.fit(model, made)
    return model.losses


if __name__ == "__main__":
    print(train())
