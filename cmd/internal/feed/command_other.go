//go:build !linux

package feed

import (
	"context"
	"errors"

	"github.com/penstock/penstock/cmd/internal/cli"
)

func (c *command) run(context.Context, *cli.Progress) error {
	return errors.New("handing batches over through shared memory needs Linux; here, read the dataset with penstock.open or penstock.torch.TorchDataset")
}
