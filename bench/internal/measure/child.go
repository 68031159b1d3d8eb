package measure

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Request is a line to a child: do items [From, To) of Set, or the items of Order, Batch at a
// time, in the way Do. An empty Do asks for the ways.
type Request struct {
	Do    string `json:"do"`
	Set   string `json:"set,omitempty"`
	From  int    `json:"from"`
	To    int    `json:"to"`
	Order []int  `json:"order,omitempty"`
	Batch int    `json:"batch,omitempty"`
}

// Answer is the line that comes back.
type Answer struct {
	Cost
	Text  string `json:"text,omitempty"` // versions
	Ways  []Way  `json:"ways,omitempty"`
	Sum   int64  `json:"sum,omitempty"` // of all bytes, if it was asked for
	Error string `json:"error,omitempty"`
}

// Has reports whether there is a way of that name.
func (a Answer) Has(name string) bool {
	return slices.ContainsFunc(a.Ways, func(w Way) bool { return w.Name == name })
}

// Way is a way to do the work.
type Way struct {
	Name string `json:"name"` // of Request.Do
	Text string `json:"text"` // what it is
}

// Child is another process that does work on request.
type Child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// Start starts a child. Its messages go to stderr.
func Start(name string, args ...string) (*Child, error) {
	c := &Child{cmd: exec.Command(name, args...)}
	c.cmd.Stderr = os.Stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewScanner(out)
	c.out.Buffer(nil, 1<<20)
	return c, c.cmd.Start()
}

// StartPeers starts one of penstock's Python programs that serve other libraries, and returns which
// libraries are installed: none, and no child, without a Python. dir contains the program; if it is
// empty, Find looks for it.
func StartPeers(python, dir, program string, args ...string) (*Child, Answer, error) {
	if python == "" {
		return nil, Answer{}, nil
	}
	if dir == "" {
		dir = Find("bench/peers", "peers")
	}
	c, err := Start(python, append([]string{filepath.Join(dir, program)}, args...)...)
	if err != nil {
		return nil, Answer{}, err
	}
	a, err := c.Ask(Request{})
	if err != nil {
		c.Close()
		return nil, Answer{}, err
	}
	return c, a, nil
}

// Ask sends a request and waits for the answer.
func (c *Child) Ask(q Request) (a Answer, err error) {
	line, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return a, err
	}
	if !c.out.Scan() {
		return a, errors.Join(fmt.Errorf("%s ended", c.cmd.Path), c.out.Err())
	}
	if err := json.Unmarshal(c.out.Bytes(), &a); err != nil {
		return a, fmt.Errorf("%s: %w", c.cmd.Path, err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// Doing is the Do of a contender in the child.
func (c *Child) Doing(way, set string) func(from, to int) (Cost, error) {
	return func(from, to int) (Cost, error) {
		a, err := c.Ask(Request{Do: way, Set: set, From: from, To: to})
		return a.Cost, err
	}
}

// Close ends the child.
func (c *Child) Close() {
	c.in.Close()
	_ = c.cmd.Wait() // what it had to say is on stderr
}

// Serve is the child's side: it answers until there are no more requests.
func Serve(in io.Reader, out io.Writer, do func(Request) (Answer, error)) error {
	lines, w := bufio.NewScanner(in), json.NewEncoder(out)
	for lines.Scan() {
		var q Request
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return err
		}
		a, err := do(q)
		if err != nil {
			a = Answer{Error: err.Error()}
		}
		if err := w.Encode(a); err != nil {
			return err
		}
	}
	return lines.Err()
}
