//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/tensor"
)

// Another process reads in place what it is given, as often as a slot comes round.
func TestImports(t *testing.T) {
	src := newSource(30, tensor.Shape{3, 4, 5})
	for mode, lazy := range modes {
		t.Run(mode, func(t *testing.T) {
			useFake(t, setting{lazy: lazy})
			testImports(t, src, self("receive"))
		})
	}
}

// The package for Python reads the same.
func TestImportsPython(t *testing.T) {
	useFake(t, setting{})
	testImports(t, newSource(30, tensor.Shape{3, 4, 5}), python(t, "import numpy"))
}

// python is a process that runs testdata/receive.py, with an interpreter that can run the
// need.
func python(t *testing.T, need string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(pythontest.Need(t, need), "testdata/receive.py")
	cmd.Env = append(os.Environ(), "PYTHONPATH=../../python", "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

func testImports(t *testing.T, src *memory, cmd *exec.Cmd) {
	r := small(src).mustOpen(t)
	other := startProcess(t, cmd)
	for epoch := range 2 {
		for b, err := range r.pf.Epoch(t.Context(), epoch) {
			if err != nil {
				t.Fatal(err)
			}
			got := other.hand(t, b, both...)
			for _, name := range both {
				if err := compare(src, name, b.Indices(), got.Data[name]); err != nil || got.Error != "" {
					t.Errorf("%v; %s", err, got.Error)
				}
			}
			if err := b.Done(r.streams[0]); err != nil {
				t.Fatal(err)
			}
		}
	}
	other.end(t)
	r.mustClose(t)
}

// Memory that was given away stays where a longer batch has outgrown it: the other process
// has it mapped still.
func TestImportsRagged(t *testing.T) {
	for mode, lazy := range modes {
		t.Run(mode, func(t *testing.T) {
			useFake(t, setting{lazy: lazy})
			c := config{src: newWords(41), unpinned: true, opts: Options{Fields: []string{"tokens", "tokens.offsets"}, Prefetch: 1}}
			c.loader.BatchSize = 6
			r := c.mustOpen(t)
			other := startProcess(t, self("receive"))
			handles := make(map[[64]byte]bool)
			for b, err := range r.pf.Epoch(t.Context(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				got := other.hand(t, b, "tokens")
				x := b.Field("tokens")
				if err := b.Synchronize(); err != nil || string(got.Data["tokens"]) != string(onDevice(x)) || got.Error != "" {
					t.Errorf("batch %d: other bytes; %v, %s", b.Step(), err, got.Error)
				}
				h, err := b.IPC("tokens")
				if err != nil {
					t.Fatal(err)
				}
				handles[h.Handle] = true
				if err := b.Done(r.streams[0]); err != nil {
					t.Fatal(err)
				}
			}
			if len(handles) < 3 {
				t.Errorf("%d handles of two slots: none has grown", len(handles))
			}
			other.end(t)
			r.mustClose(t)
		})
	}
}

// The error of a field that cannot be mapped has the reason, and what to do.
func TestImportsRefused(t *testing.T) {
	useFake(t, setting{devices: 2})
	r := config{src: newSource(30, tensor.Shape{16}), devices: 2, opts: Options{Fields: both, Prefetch: 2}}.sized(5).mustOpen(t)
	defer r.mustClose(t)
	im := newImports(t, r.devices[0])
	other := newImports(t, r.devices[1])
	hidden := startProcess(t, self("receive", "CUDA_VISIBLE_DEVICES=1"))
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		h, err := b.IPC("images")
		if err != nil {
			t.Fatal(err)
		}
		_, err = im.Open(h)
		wants(t, err, "device 0: open memory of another process: this process has given it", "Batch.Field")
		wants(t, errors.New(hidden.hand(t, b, "images").Error), "which this process does not see; CUDA_VISIBLE_DEVICES")
		h.Process = "another"
		_, err = other.Open(h)
		wants(t, err, "device 1", "it is on device 0: make Imports there")
		_, err = im.Open(h) // the driver, too, says no
		wants(t, err, "cuIpcOpenMemHandle: CUDA_ERROR_INVALID_CONTEXT (201)")
		for _, shape := range []tensor.Shape{{-1}, {1 << 40, 1 << 40}} {
			h.Shape = shape
			_, err = im.Open(h)
			wants(t, err, "not what Batch.IPC returned")
		}
		break
	}
	hidden.end(t)
	for _, m := range []*Imports{im, other} {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := m.Close(); !errors.Is(err, ErrClosed) {
			t.Errorf("closed twice: %v", err)
		}
		_, err := m.Open(IPC{UUID: m.dev.uuid, DType: tensor.Uint8})
		if !errors.Is(err, ErrClosed) {
			t.Errorf("opened after Close: %v", err)
		}
	}
}

func (c config) sized(n int) config {
	c.loader.BatchSize = n
	return c
}

func newImports(t *testing.T, d *Device) *Imports {
	t.Helper()
	m, err := d.NewImports()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func wants(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// startGiver starts a process that gives memory, until it is ended.
func startGiver(t *testing.T) (*process, IPC) {
	t.Helper()
	giver := startProcess(t, self("give"))
	var h IPC
	if err := giver.out.Decode(&h); err != nil {
		t.Fatalf("%v: %s", err, giver.say)
	}
	return giver, h
}

// Close waits for what reads the memory, and so may the giving process.
func TestImportsClose(t *testing.T) {
	for mode, lazy := range modes {
		t.Run(mode, func(t *testing.T) {
			useFake(t, setting{lazy: lazy})
			giver, h := startGiver(t)
			dev := mustOpenDevice(t)
			im := newImports(t, dev)
			x, err := im.Open(h)
			if err != nil {
				t.Fatal(err)
			}
			s := seen{dev: dev, fields: make(map[string][]byte)}
			stream, err := dev.NewStream()
			if err != nil {
				t.Fatal(err)
			}
			if err := new(rig).read(x, "images", stream, s); err != nil {
				t.Fatal(err)
			}
			if err := im.Close(); err != nil {
				t.Error(err)
			}
			giver.end(t)
			if err := errors.Join(dev.FreeStream(stream), compare(newSource(5, tensor.Shape{16}), "images", []int{0, 1, 2, 3, 4}, s.fields["images"])); err != nil {
				t.Error(err)
			}
			if err := errors.Join(dev.unpin(s.fields["images"]), dev.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A process that has ended gives nothing any more.
func TestImportsOfEnded(t *testing.T) {
	useFake(t, setting{})
	giver, h := startGiver(t)
	dev := mustOpenDevice(t)
	defer dev.Close()
	im := newImports(t, dev)
	if x, err := im.Open(h); err != nil || x.Bytes() != 5*16 {
		t.Errorf("%+v, %v", x, err)
	}
	if err := im.Close(); err != nil {
		t.Error(err)
	}
	giver.end(t)
	im = newImports(t, dev)
	_, err := im.Open(h)
	wants(t, err, "cuIpcOpenMemHandle: CUDA_ERROR_MAP_FAILED (205); has the giving process ended", "--ipc=host")
	if err := im.Close(); err != nil {
		t.Error(err)
	}
}

// A device that cannot share memory says so when it is asked to.
func TestIPCNotSupported(t *testing.T) {
	useFake(t, setting{noIPC: true})
	r := small(newSource(30, tensor.Shape{16})).mustOpen(t)
	defer r.mustClose(t)
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		_, err := b.IPC("images")
		wants(t, err, "device 0: it cannot share memory between processes (CUDA IPC)")
		break
	}
}

// The fake counts memory that is freed while another process has it, but not while one had
// it that was killed.
func TestFreedBeneath(t *testing.T) {
	for _, killed := range []bool{false, true} {
		useFake(t, setting{withoutCheck: true})
		r := small(newSource(30, tensor.Shape{16})).mustOpen(t)
		other := startProcess(t, self("receive"))
		for b, err := range r.pf.Epoch(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			other.hand(t, b, "images")
			break
		}
		if killed {
			if err := other.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = other.cmd.Wait() // says that it was killed
		}
		r.mustClose(t)
		if st := stats(); st.alive() != 0 || (st.faults == 1) == killed {
			t.Errorf("killed %v: %+v %s", killed, st, fakeDriver.fault())
		}
		if !killed {
			other.end(t)
		}
	}
}
