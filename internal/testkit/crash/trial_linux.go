package crash

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// Crashes is the flag that makes every Trial more thorough.
var Crashes = flag.Int("crashes", 0,
	"N: try every state, N random power cuts at each step, and a second crash at each step from N states; 0: try one "+
		"state in 96")

// quarter is the flag that limits -crashes to a part of the states: .ci/run tries another part at each commit.
var quarter = flag.Int("quarter", 0,
	"with -crashes: try the states of quarter 1, 2, 3 or 4 only, and no second crash from N of them; 0: try all")

// few states are tried without the flag, one in this many.
const few = 96

// Trial is the test of a program that goes on after crashes.
type Trial struct {
	Folder  string // with its content before the program runs; it ends up with the content after it
	Scratch string // a folder for states

	// Command returns what the running program's file needs to do its work in folder.
	Command func(folder string) (env, args []string)

	// Done is called when Folder is as the program leaves it that is not interrupted.
	Done func()

	// Twice picks states, by what is in folder; from one of those, in the middle, a second crash
	// at each step is tried. nil picks none.
	Twice func(folder string) bool

	// Over reports that the program has done all its work in folder and would do it once more, so that no second crash
	// is tried from there. nil: it does nothing more.
	Over func(folder string) bool

	// GoOn has the program continue from a state that is in folder, and returns an error if the
	// result is wrong.
	GoOn func(s State, folder string) error

	every  int // one state in this many is tried
	looked int // and one in this many is shown to Twice
	first  int // number of the first of them, counted from 0
}

// Run records the program, and has it go on after a crash at any of its steps; from the state
// that Twice picks, and with the flag -crashes N from N others, also after a second crash at any
// of the steps that it makes when it goes on. Without that flag it tries one state in 96, and with -quarter one in 4.
func (c *Trial) Run(t *testing.T) {
	t.Helper()
	log := c.record(t, c.Folder)
	c.Done()
	if c.every, c.looked = 1, 1; *Crashes == 0 {
		c.every, c.looked = few, few
		if c.Twice != nil {
			c.looked = 8 // it has to meet some of those
		}
		t.Logf("one state in %d is tried; -crashes 1 tries all", c.every)
	} else if *quarter != 0 {
		c.every, c.looked, c.first = 4, 4, *quarter%4
	}
	picked := sample{most: *Crashes, rng: rand.New(rand.NewPCG(5, 5))}
	if *quarter != 0 {
		picked.most = 0
	}
	var twice []State
	n := c.each(t, log, "", func(s State, folder string) {
		if c.Over != nil && c.Over(folder) {
			return
		}
		picked.add(s)
		if c.Twice != nil && c.Twice(folder) {
			twice = append(twice, s)
		}
	})
	c.looked = c.every
	first := picked.states
	if len(twice) > 0 {
		first = append(first, twice[len(twice)/2])
	} else if c.Twice != nil && *quarter == 0 {
		t.Error("there is no state to crash twice from")
	}
	again := 0
	for _, s := range first {
		again += c.again(t, s)
	}
	t.Logf("%d steps, %d states, and %d after a second crash", log.Len(), n, again)
}

// again tries a second crash while the program continues from a state.
func (c *Trial) again(t *testing.T, first State) (n int) {
	t.Helper()
	folder := filepath.Join(c.Scratch, "second")
	require.NoError(t, first.Write(folder))
	n = c.each(t, c.record(t, folder), first.What+"; then ", func(State, string) {})
	require.NoError(t, os.RemoveAll(folder))
	return n
}

// sample is states at random, at most that many.
type sample struct {
	most   int
	rng    *rand.Rand
	states []State
	of     int
}

func (s *sample) add(state State) {
	s.of++
	if len(s.states) < s.most {
		s.states = append(s.states, state)
	} else if i := s.rng.IntN(s.of); i < s.most {
		s.states[i] = state
	}
}

// record skips the test where that cannot be done.
func (c *Trial) record(t *testing.T, folder string) *Log {
	t.Helper()
	env, args := c.Command(folder)
	log, err := Record(folder, append(os.Environ(), env...), append([]string{os.Args[0]}, args...)...)
	if errors.Is(err, ErrUntraceable) {
		t.Skip(err)
	}
	require.NoError(t, err)
	return log
}

// each continues from every state that a crash can leave, and returns how many they are.
func (c *Trial) each(t *testing.T, log *Log, before string, reported func(s State, folder string)) (n int) {
	t.Helper()
	folder := filepath.Join(c.Scratch, "state")
	for s := range log.States(*Crashes, 1) {
		if n++; n%c.looked != c.first%c.looked {
			continue
		}
		require.NoError(t, s.Write(folder))
		reported(s, folder)
		if n%c.every != c.first {
			// only looked at
		} else if err := c.GoOn(s, folder); err != nil {
			t.Fatalf("%s%s, the last mark being %q: %v", before, s.What, s.Mark, err)
		}
		require.NoError(t, os.RemoveAll(folder))
	}
	return n
}
