//go:build !linux

package feed

import (
	"context"
	"errors"

	"github.com/penstock/penstock/cmd/internal/cli"
)

// listen fails: serving several clients needs the native transport, which is written for Linux.
func (c *command) listen(context.Context, *cli.Progress) error {
	return errors.New("--socket needs Linux; here, penstock.DataLoader(DATASET) starts a feed for each training process")
}
