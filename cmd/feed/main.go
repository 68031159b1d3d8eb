// Feed hands batches of a dataset to a training process: see package internal/feed, or
// feed --help.
package main

import (
	"github.com/penstock/penstock/internal/cli"
	"github.com/penstock/penstock/internal/feed"
)

func main() { cli.Main(feed.Command()) }
