// Feed hands batches of a dataset to a training process: see package cmd/internal/feed, or
// feed --help.
package main

import (
	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/feed"
)

func main() { cli.Main(feed.Command()) }
