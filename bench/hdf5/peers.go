package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
)

//go:embed peer.py
var script []byte

// peer is a child process that reads with h5py.
type peer struct {
	*measure.Child
	name  string // with versions
	index bool   // it can list chunks in less than minutes
}

// startPeers writes the files by the first of the interpreters, and starts a child of each.
func startPeers(pythons []string, dir, records string) (list []peer, err error) {
	name := filepath.Join(dir, "peer.py")
	if err := os.WriteFile(name, script, 0o600); err != nil {
		return nil, err
	}
	args := []string{name, "make", dir}
	if records != "" {
		args = append(args, records)
	}
	if out, err := exec.Command(pythons[0], args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s with h5py is needed (set PYTHON): %w: %s", pythons[0], err, out)
	}
	for _, python := range pythons {
		c, a, err := measure.StartPeers(python, dir, filepath.Base(name), "serve", dir)
		if err != nil {
			return list, fmt.Errorf("%s: %w", python, err)
		}
		list = append(list, peer{c, a.Text, a.Has("index")})
	}
	return list, nil
}

// pythons returns the interpreters that PYTHON names, with commas between them.
func pythons() []string {
	if names := os.Getenv("PYTHON"); names != "" {
		return strings.Split(names, ",")
	}
	return []string{"python3"}
}

// reads is the contender that reads records of a file in that order.
func (p peer) reads(file string, order []int, batch int) measure.Contender {
	return measure.Contender{Name: p.name, Do: func(from, to int) (measure.Cost, error) {
		a, err := p.Ask(measure.Request{Do: "read", Set: file, Order: order[from:to], Batch: batch})
		return a.Cost, err
	}}
}

// lists is the contender that lists the chunks of a file.
func (p peer) lists(file string) measure.Contender {
	return measure.Contender{Name: p.name, Do: p.Doing("index", file)}
}
