package feed

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
)

// openFiles returns how many descriptors this process has.
func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(files)
}

// Descriptors that come with a hello are closed, however many there are, and whatever the hello says.
func TestDescriptorsAreClosed(t *testing.T) {
	path := makeDataset(t, false)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	before := openFiles(t)
	for _, c := range []struct {
		n           int
		hello, want string
	}{
		{2, `{"hello":{"version":4,"options":{"batch_size":4}}}`, "2 descriptors came with the hello; send one"},
		{3, `{"hello":{"version":4,"options":{"batch_size":4}}}`, "descriptors came with the hello; send one"},
		{1, `{"hello":{"version":4,"options":{"batch_size":0}}}`, "batch_size is 0"},
		{1, `no message`, "a message that is none"},
	} {
		for range 20 {
			x := dial(t.Context(), t, path)
			fds := make([]int, c.n)
			for i := range fds {
				fds[i] = int(null.Fd())
			}
			if _, _, err := x.conn.(*net.UnixConn).WriteMsgUnix(framed(c.hello), unix.UnixRights(fds...), nil); err != nil {
				t.Fatal(err)
			}
			if r := x.receive(); !strings.Contains(r.Error, c.want) {
				t.Fatalf("%d descriptors: %+v; want an error with %q", c.n, r, c.want)
			}
			x.conn.Close()
			require.NoError(t, x.result())
		}
	}
	deadline := time.Now().Add(hangTimeout) // the processes of clients are no longer watched a moment later
	for openFiles(t) > before {
		if time.Now().After(deadline) {
			t.Fatalf("%d descriptors, and %d before 80 clients", openFiles(t), before)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// waiting is a listener that first has errors, and then one client.
type waiting struct {
	errs    []error
	clients []*net.UnixConn
	ended   context.Context
}

func (w *waiting) Close() error { return nil }

func (w *waiting) AcceptUnix() (*net.UnixConn, error) {
	if len(w.errs) > 0 {
		err := w.errs[0]
		w.errs = w.errs[1:]
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
	}
	if len(w.clients) > 0 {
		c := w.clients[0]
		w.clients = w.clients[1:]
		return c, nil
	}
	<-w.ended.Done()
	return nil, net.ErrClosed
}

// A feed that has no descriptor for another client serves those it has, and the next one when it has one.
func TestAcceptWaits(t *testing.T) {
	ours, theirs := socketPair(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	var out strings.Builder
	c := &command{datasets: []string{makeDataset(t, false)}, workers: 1}
	ended := make(chan error, 1)
	go func() {
		l := &waiting{errs: []error{unix.EMFILE, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOBUFS}, clients: []*net.UnixConn{theirs}, ended: ctx}
		ended <- c.accept(ctx, l, cli.NewProgress(&out, "feed", false))
	}()
	x := &client{t: t, conn: ours, in: bufio.NewReader(ours), take: takeMemory}
	if w := x.greet(`{"batch_size":4}`); w == nil || w.Records != records {
		t.Errorf("%+v", w)
	}
	ours.Close()
	why := errors.New("enough")
	cancel(why)
	if err := <-ended; !errors.Is(err, why) {
		t.Error(err)
	}
	if n := strings.Count(out.String(), "client 1 waits: accept: accept4: too many open files; end other clients, or raise ulimit -n"); n != 1 {
		t.Errorf("%d notes: %s", n, out.String())
	}
	l := &waiting{errs: []error{unix.EINVAL}}
	if err := c.accept(t.Context(), l, cli.NewProgress(io.Discard, "feed", true)); !errors.Is(err, unix.EINVAL) {
		t.Errorf("%v for a listener that is none", err)
	}
}

// truncated is the guard of a dataset whose memory cannot be read any more.
func truncated(f func() error) error { return errors.Join(f(), errTruncated) }

var errTruncated = errors.New("the file was truncated")

// A batch that cannot be handed over gives its slot and its memory back.
func TestSlotsComeBack(t *testing.T) {
	for _, ragged := range []bool{false, true} {
		o := &Options{BatchSize: 5, Slots: 3, NumWorkers: 1}
		sub, err := newSubject(t.Context(), new(datasetarg.Cache), []string{makeDataset(t, ragged)}, o, nil, nil)
		require.NoError(t, err)
		defer sub.Close()
		for i := range sub.datasets {
			sub.datasets[i].guard = truncated
		}
		a := arenaOf(t)
		lo := sub.options
		if !ragged {
			lo.Allocator = a
		}
		ld, err := loader.New(sub.src, lo)
		require.NoError(t, err)
		d, err := newDesk(a, sub, !ragged, 3, 5)
		require.NoError(t, err)
		s := &session{subject: sub, arena: a, ld: ld, desk: d}
		ctx, cancel := context.WithTimeout(t.Context(), hangTimeout)
		for b, err := range ld.Epoch(ctx, 0) {
			require.NoError(t, err)
			if err := s.hand(ctx, b); !errors.Is(err, errTruncated) {
				t.Fatalf("batch %d: %v", b.Step(), err)
			}
			if st := ld.Stats(); len(d.free) != 3 || st.Kept != 0 {
				t.Fatalf("batch %d: %d of 3 slots are free, %d batches are kept", b.Step(), len(d.free), st.Kept)
			}
		}
		cancel()
		require.NoError(t, errors.Join(d.Close(), ld.Close(), a.Close()))
	}
}

// onMachine has a test run as if this process might use some of the cores of a machine.
func onMachine(t *testing.T, mine, all int) {
	t.Helper()
	old, procs := machine, runtime.GOMAXPROCS(mine)
	machine = func() (int, int) { return mine, all }
	t.Cleanup(func() {
		machine = old
		runtime.GOMAXPROCS(procs)
	})
}

// statsOf says hello and asks for the statistics.
func (c *client) statsOf(options string) loader.Stats {
	c.t.Helper()
	c.greet(options)
	c.send(`{"stats":true}`)
	r := c.receive()
	if r.Stats == nil {
		c.t.Fatalf("%+v", r)
	}
	return r.Stats.Loader
}

// Each of eight ranks has an eighth of the cores for its workers, by the variables of any launcher; one that is bound to
// cores of its own has all of these.
func TestRanksShareTheCores(t *testing.T) {
	for _, name := range []string{"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"} {
		t.Setenv(name, "") // of what started this test
	}
	path := makeDataset(t, false)
	for _, c := range []struct {
		env, value            string
		mine, all             int
		workers               string
		cores, local, started int
	}{
		{"LOCAL_WORLD_SIZE", "8", 160, 160, "", 20, 8, 19},
		{"SLURM_NTASKS_PER_NODE", "8(x2)", 160, 160, "", 20, 8, 19},
		{"SLURM_STEP_TASKS_PER_NODE", "8(x2),4", 160, 160, "", 20, 8, 19},
		{"OMPI_COMM_WORLD_LOCAL_SIZE", "8", 160, 160, "", 20, 8, 19},
		{"MPI_LOCALNRANKS", "4", 160, 0, "", 40, 4, 39},
		{"LOCAL_WORLD_SIZE", "8", 160, 160, `,"num_workers":5`, 20, 8, 5},
		{"LOCAL_WORLD_SIZE", "8", 20, 160, "", 20, 1, 19}, // bound by srun
		{"LOCAL_WORLD_SIZE", "8", 21, 160, "", 2, 8, 1},
		{"LOCAL_WORLD_SIZE", "1", 160, 160, "", 160, 1, 159},
		{"LOCAL_WORLD_SIZE", "", 160, 160, "", 160, 1, 159},
	} {
		t.Run(fmt.Sprintf("%s=%s on %d of %d", c.env, c.value, c.mine, c.all), func(t *testing.T) {
			t.Setenv(c.env, c.value)
			onMachine(t, c.mine, c.all)
			st := dialWith(t.Context(), t, server{paths: []string{path}, cache: new(datasetarg.Cache)}).statsOf(`{"batch_size":2` + c.workers + `}`)
			if st.Cores != c.cores || st.LocalSize != c.local || st.Workers != c.started {
				t.Errorf("%d cores, %d processes, %d workers; want %d, %d, %d", st.Cores, st.LocalSize, st.Workers, c.cores, c.local, c.started)
			}
		})
	}
}

// If feed listens, the client's environment, not feed's, states how many processes share the host.
func TestEnvironmentOfTheClient(t *testing.T) {
	const variable = "PENSTOCK_TEST_CLIENT_OF"
	if socket := os.Getenv(variable); socket != "" { // the client
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
		require.NoError(t, err)
		text, err := json.Marshal((&client{t: t, conn: conn, in: bufio.NewReader(conn), take: takeMemory}).statsOf(`{"batch_size":2}`))
		require.NoError(t, err)
		fmt.Printf("stats %s\n", text)
		return
	}
	t.Setenv("LOCAL_WORLD_SIZE", "3") // of feed
	onMachine(t, 160, 160)
	l, err := listenAlone(filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- (&command{datasets: []string{makeDataset(t, false)}}).accept(ctx, l, cli.NewProgress(io.Discard, "feed", true))
	}()
	child := exec.Command(os.Args[0], "-test.run=^TestEnvironmentOfTheClient$", "-test.v")
	child.Env = append(os.Environ(), "LOCAL_WORLD_SIZE=8", variable+"="+l.Addr().String())
	out, err := child.CombinedOutput()
	cancel()
	l.Close()
	<-ended
	_, text, ok := strings.Cut(string(out), "stats ")
	text, _, _ = strings.Cut(text, "\n")
	var st loader.Stats
	if err != nil || !ok || json.Unmarshal([]byte(text), &st) != nil || st.Cores != 20 || st.LocalSize != 8 {
		t.Errorf("%v: %s", err, out)
	}
}
