package feed

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
)

// inherited has the numbers of the files that the client opened before it started feed: file
// descriptors, or handles on Windows.
type inherited struct {
	fd    int            // of the connection
	files map[string]int // by purpose: memory, arrays

	functions []int // a file of shared memory, and a socket to each worker process
}

// fileNames lists the purposes that files may have.
var fileNames = []string{"arrays", "memory"}

// check returns the problems of the numbers, a sentence each.
func (i inherited) check() []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(i.files)) {
		if !slices.Contains(fileNames, name) || i.files[name] < 0 {
			problems = append(problems, fmt.Sprintf("--inherit %s=%d: must be memory=N or arrays=N", name, i.files[name]))
		}
	}
	if len(i.files) > 0 && (i.fd < 0 || i.files["memory"] == 0) {
		problems = append(problems, "--inherit is for --fd, and takes memory=N")
	}
	if n := len(i.functions); n > 0 && (i.fd < 0 || n < 2) {
		problems = append(problems, "--functions is for --fd, and takes the descriptors of a file and of one socket at least")
	}
	return problems
}

// workers returns the worker processes of the client's functions; nil if the client has no
// functions.
func (i inherited) workers() (*functionWorkers, error) {
	if len(i.functions) == 0 {
		return nil, nil
	}
	w := new(functionWorkers)
	for k, fd := range i.functions {
		closeOnExec(fd)
		f := os.NewFile(uintptr(fd), "functions")
		if f == nil {
			return nil, fmt.Errorf("--functions %d: no descriptor", fd)
		}
		if k == 0 {
			w.memory = newArena(sharedFile{f})
			continue
		}
		conn, err := net.FileConn(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("--functions %d: not an open socket", fd)
		}
		w.conns = append(w.conns, conn)
	}
	return w, nil
}

// open returns the transport: portable if the client passes a file of memory, otherwise native.
func (i inherited) open() (transport, error) {
	conn, err := openConnection(i.fd)
	if err != nil {
		return nil, err
	}
	var t transport
	if len(i.files) == 0 {
		t, err = newNative(conn, os.LookupEnv)
	} else {
		t, err = i.portable(conn)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return t, nil
}

// openConnection returns the socket on a descriptor. net.FileConn duplicates the descriptor, so f
// is closed.
func openConnection(fd int) (connection, error) {
	closeOnExec(fd)
	f := os.NewFile(uintptr(fd), "socket")
	if f == nil {
		return nil, fmt.Errorf("--fd %d: no descriptor", fd)
	}
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("--fd %d: not an open socket: %w", fd, err)
	}
	if c, ok := conn.(connection); ok {
		return c, nil
	}
	return nil, errors.Join(fmt.Errorf("--fd %d: not a stream socket", fd), conn.Close())
}

// portable returns the portable transport with the inherited files.
func (i inherited) portable(conn connection) (transport, error) {
	p := &portable{conn: conn}
	var err error
	if p.shared, err = i.openFile("memory"); err != nil {
		return nil, err
	}
	if _, ok := i.files["arrays"]; ok {
		if p.arrays, err = i.openFile("arrays"); err != nil {
			return nil, errors.Join(err, p.shared.Close())
		}
	}
	return p, nil
}

// openFile returns the inherited file with a purpose, which must be a regular file.
func (i inherited) openFile(name string) (*os.File, error) {
	n := i.files[name]
	closeOnExec(n)
	f := os.NewFile(uintptr(n), name)
	if f == nil {
		return nil, fmt.Errorf("--inherit %s=%d: no descriptor", name, n)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("--inherit %s=%d: not an open file", name, n), f.Close())
	}
	return f, nil
}
