package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/penstock/penstock/internal/h5chunk"
)

//go:embed peer.py
var script []byte

// peer is the child process that reads with h5py.
type peer struct {
	dir       string
	cmd       *exec.Cmd
	in        io.WriteCloser
	out       *bufio.Scanner
	slowIndex bool // listing chunks takes time that grows with the square of their number
}

// question and answer are the lines to and from peer.py.
type question struct {
	Kind  string `json:"kind"`
	File  string `json:"file"`
	Order []int  `json:"order,omitempty"`
	Batch int    `json:"batch,omitempty"`
}

type answer struct {
	Wall      float64 `json:"wall"`
	CPU       float64 `json:"cpu"`
	Sum       int64   `json:"sum"`
	Text      string  `json:"text"`
	SlowIndex bool    `json:"slow_index"`
}

// startPeer writes the files and starts the child.
func startPeer(dir, records string) (*peer, error) {
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	name := filepath.Join(dir, "peer.py")
	if err := os.WriteFile(name, script, 0o600); err != nil {
		return nil, err
	}
	args := []string{name, "make", dir}
	if records != "" {
		args = append(args, records)
	}
	if out, err := exec.Command(python, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s with h5py is needed (set PYTHON): %w: %s", python, err, out)
	}
	p := &peer{dir: dir, cmd: exec.Command(python, name, "serve", dir)}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	return p, p.cmd.Start()
}

func (p *peer) ask(q question) (a answer, err error) {
	line, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return a, err
	}
	if !p.out.Scan() {
		return a, errors.Join(errors.New("peer.py ended"), p.out.Err())
	}
	return a, json.Unmarshal(p.out.Bytes(), &a)
}

func (p *peer) close() {
	p.in.Close()
	_ = p.cmd.Wait()
}

// describe prints what is compared.
func (p *peer) describe(w io.Writer) error {
	a, err := p.ask(question{Kind: "version"})
	if err != nil {
		return err
	}
	p.slowIndex = a.SlowIndex
	fmt.Fprintf(w, "%s; %s; penstock inflates by %s, %s, %d processors\n\n", a.Text, gonumVersion(), h5chunk.Backend, runtime.Version(), runtime.NumCPU())
	fmt.Fprintf(w, "%-36s %-6s %-24s %-24s %7s %s\n", "case", "over", "clock", "processor", "best", "penstock's best")
	return nil
}
