//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// receipt is another process's report of the fields that it received.
type receipt struct {
	Data  map[string][]byte `json:"data"`
	Error string            `json:"error"`
}

// otherProcess is the program of a test's other process, by PENSTOCK_IPC: it receives
// batches of the test, or gives it one.
func otherProcess(role string) int {
	run, ok := map[string]func(*json.Decoder, *json.Encoder) error{
		"give": give, "illegal": illegal,
		"receive": func(in *json.Decoder, out *json.Encoder) error { return receive(in, out, slices.Clone[[]byte]) },
		"digest":  func(in *json.Decoder, out *json.Encoder) error { return receive(in, out, digest) },
	}[role]
	if !ok {
		panic(role)
	}
	if err := run(json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// digest returns a checksum of bytes.
func digest(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(b))
}

// illegal makes a kernel read an invalid address, and prints the error of the next call.
func illegal(*json.Decoder, *json.Encoder) error {
	dev, err := Open(0)
	if err != nil {
		return err
	}
	_, k, err := (Normalize{}).of(tensor.Spec{Name: "images", DType: tensor.Uint8, Shape: tensor.Shape{3, 4, 5}})
	if err != nil {
		return err
	}
	dst, err := dev.makeMemory(4 * 60)
	if err != nil {
		return err
	}
	fmt.Println(errors.Join(dev.normalize(k, dst, 0x1000, 60, 0), dev.Synchronize()))
	return nil
}

// receive reads the fields that it is given, and sends back the result of of.
func receive(in *json.Decoder, out *json.Encoder, of func([]byte) []byte) error {
	dev, err := Open(0)
	if err != nil {
		return err
	}
	im, err := dev.NewImports()
	if err != nil {
		return err
	}
	stream, err := dev.NewStream()
	if err != nil {
		return err
	}
	for {
		var given map[string]IPC
		if err := in.Decode(&given); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		r := receipt{Data: make(map[string][]byte)}
		for name, h := range given {
			if r.Data[name], err = fetch(dev, im, h, stream, of); err != nil {
				r.Error = err.Error()
			}
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	if err := errors.Join(dev.FreeStream(stream), im.Close(), dev.Close()); err != nil {
		return err
	}
	if fakeDriver.why == "" && (stats().alive() != 0 || stats().faults != 0) {
		return fmt.Errorf("%+v %s", stats(), fakeDriver.fault())
	}
	return nil
}

// fetch returns the result of of for a field of another process.
func fetch(dev *Device, im *Imports, h IPC, stream Stream, of func([]byte) []byte) ([]byte, error) {
	x, err := im.Open(h)
	if err != nil {
		return nil, err
	}
	host, err := dev.pin(max(x.Bytes(), 1))
	if err != nil {
		return nil, err
	}
	if x.Bytes() > 0 {
		err = dev.readAsync(host[:x.Bytes()], x.Ptr, stream)
	}
	err = errors.Join(err, dev.SynchronizeStream(stream))
	got := of(host[:x.Bytes()])
	return got, errors.Join(err, dev.unpin(host))
}

// give gives the first batch of an epoch, and returns when in ends, which frees all its memory.
func give(in *json.Decoder, out *json.Encoder) error {
	dev, err := Open(0)
	if err != nil {
		return err
	}
	ld, err := loader.New(newSource(30, tensor.Shape{16}), loader.Options{BatchSize: 5})
	if err != nil {
		return err
	}
	pf, err := New(ld, Options{Devices: []*Device{dev}, Fields: both})
	if err != nil {
		return err
	}
	for b, err := range pf.Epoch(context.Background(), 0) {
		if err != nil {
			return err
		}
		h, err := b.IPC("images")
		if err != nil {
			return err
		}
		if err := out.Encode(h); err != nil {
			return err
		}
		var end any
		if err := in.Decode(&end); !errors.Is(err, io.EOF) {
			return err
		}
		os.Exit(0)
	}
	return nil
}

// process is a running other process.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
	say *strings.Builder
}

// self is a process of this program.
func self(role string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "PENSTOCK_IPC="+role), env...)
	return cmd
}

// startProcess starts a process, which ends with the test at the latest.
func startProcess(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	wholeBlocks(t)
	p := &process{cmd: cmd, say: new(strings.Builder)}
	cmd.Stderr = p.say
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test has failed
	p.in, p.out = in, json.NewDecoder(out)
	return p
}

// hand gives fields of a batch to the process, and returns what it read there.
func (p *process) hand(t testing.TB, b Batch, fields ...string) receipt {
	t.Helper()
	given := make(map[string]IPC)
	for _, name := range fields {
		h, err := b.IPC(name)
		if err != nil {
			t.Fatal(err)
		}
		given[name] = h
	}
	var r receipt
	if err := errors.Join(json.NewEncoder(p.in).Encode(given), p.out.Decode(&r)); err != nil {
		_ = p.in.Close()
		t.Fatalf("%v, %v: %s", err, p.cmd.Wait(), p.say)
	}
	return r
}

// end ends the process, and checks that it found no errors.
func (p *process) end(t testing.TB) {
	t.Helper()
	if err := p.in.Close(); err != nil {
		t.Error(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, p.say)
	}
}
