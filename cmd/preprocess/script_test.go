package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/h5test"
)

// condition decides [python], whether there is a Python with NumPy and h5py; [smalldisk], whether small disks can be mounted.
func condition(name string) (bool, error) {
	switch name {
	case "python":
		return h5test.Find() != "", nil
	case "smalldisk":
		return canMount(), nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// imageCmd is "image SIZE FILE...": it writes images with WIDTHxHEIGHT pixels, each a different
// picture, in the format that the file's name ends in.
func imageCmd(ts *testscript.TestScript, _ bool, args []string) {
	var w, h int
	if _, err := fmt.Sscanf(args[0], "%dx%d", &w, &h); err != nil {
		ts.Fatalf("usage: image WIDTHxHEIGHT FILE...: %v", err)
	}
	for i, name := range args[1:] {
		path := ts.MkAbs(name)
		ts.Check(os.MkdirAll(filepath.Dir(path), 0o777))
		data, err := encode(filepath.Ext(name), picture(w, h, i))
		ts.Check(err)
		ts.Check(os.WriteFile(path, data, 0o666))
	}
}

func picture(w, h, seed int) image.Image {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.Set(x, y, color.RGBA{uint8(x*7 + seed*31), uint8(y*5 + seed*17), uint8(x ^ y), 255})
		}
	}
	return m
}

func encode(ext string, m image.Image) ([]byte, error) {
	var b bytes.Buffer
	var err error
	switch ext {
	case ".png":
		err = png.Encode(&b, m)
	case ".gif":
		err = gif.Encode(&b, m, nil)
	case ".bmp":
		err = bmp.Encode(&b, m)
	case ".tiff":
		err = tiff.Encode(&b, m, nil)
	default:
		err = jpeg.Encode(&b, m, nil)
	}
	return b.Bytes(), err
}

// truncateCmd is "truncate FILE N": it leaves the first N bytes.
func truncateCmd(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), n))
}

// exitsCmd is "exits CODE COMMAND ARG...": the command must end with that code.
func exitsCmd(ts *testscript.TestScript, _ bool, args []string) {
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// holdsCmd is "holds FOLDER NAME...": the folder must hold exactly that, hidden files
// counted.
func holdsCmd(ts *testscript.TestScript, _ bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := slices.Sorted(slices.Values(args[1:])); !slices.Equal(names, want) {
		ts.Fatalf("%s holds %q, want %q", args[0], names, want)
	}
}

// sameCmd is "same A B": two files or folders must have the same content.
func sameCmd(ts *testscript.TestScript, neg bool, args []string) {
	a, err := foldertest.Read(ts.MkAbs(args[0]))
	ts.Check(err)
	b, err := foldertest.Read(ts.MkAbs(args[1]))
	ts.Check(err)
	if maps.Equal(a, b) == neg {
		ts.Fatalf("%s and %s are the same: %v", args[0], args[1], neg)
	}
}

// stopCmd is "stop-at FILE SIGNAL COMMAND ARG...": it waits until the command has made the
// file and sends it INT or KILL. After INT the command must end with code 130.
func stopCmd(ts *testscript.TestScript, _ bool, args []string) {
	file, signal, args := args[0], args[1], args[1:]
	path, err := exec.LookPath(filepath.Join(strings.Split(ts.Getenv("PATH"), string(os.PathListSeparator))[0], args[1]))
	ts.Check(err)
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.Getenv("WORK"), ts.Stdout(), ts.Stderr()
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for range time.Tick(time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(file)); err == nil {
			break
		}
		select {
		case err := <-ended:
			ts.Fatalf("it ended before it made %s: %v", file, err)
		default:
		}
	}
	signals := map[string]os.Signal{"INT": os.Interrupt, "KILL": os.Kill}
	ts.Check(cmd.Process.Signal(signals[signal]))
	<-ended
	if code := cmd.ProcessState.ExitCode(); signal == "INT" && code != 130 {
		ts.Fatalf("exit code %d, want 130", code)
	}
}
