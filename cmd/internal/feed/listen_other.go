//go:build !linux

package feed

import (
	"context"
	"errors"

	"github.com/penstock/penstock/cmd/internal/cli"
)

func (c *command) listen(context.Context, *cli.Progress) error {
	return errors.New("--socket needs Linux; here, penstock.DataLoader(DATASET) starts a feed for each training process")
}
