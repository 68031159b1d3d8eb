package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
)

const script = "hdf5_files.py"

// peer is a child process that reads with h5py.
type peer struct {
	*measure.Child
	name  string // with versions
	index bool   // it can list chunks in less than minutes
}

// makeFiles writes the files to the folder that the arguments begin with.
func makeFiles(python string, args []string) error {
	path := filepath.Join(measure.Find("bench/peers", "peers"), script)
	if out, err := exec.Command(python, append([]string{path, "make"}, args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s with h5py is needed (set PYTHON): %w: %s", python, err, out)
	}
	return nil
}

// startPeers starts a child of each of the interpreters.
func startPeers(pythons, args []string) (list []peer, err error) {
	for _, python := range pythons {
		c, a, err := measure.StartPeers(python, "", script, append([]string{"serve"}, args...)...)
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
