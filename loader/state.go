package loader

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/penstock/penstock/loader/internal/digest"
	"github.com/penstock/penstock/loader/internal/schedule"
	"github.com/penstock/penstock/loader/sampler"
)

// State is a position in a run: which batches were handed out. A State is small enough for every
// checkpoint: as JSON fewer than 300 bytes, and at most 10 KB with Weights and Mix. Everything except
// Epoch, Step, Done, Weights and Mix identifies the run, so that Resume can refuse a State of another
// run.
//
// A State has no random state: batches are functions of seed, epoch and step.
type State struct {
	Version     int    `json:"v"`
	Dataset     string `json:"dataset,omitempty"` // the Source's ID; empty if it has none
	Generations string `json:"gen,omitempty"`     // of its datasets, their numbers with a comma between them
	Records     int    `json:"n"`                 // of the Source
	Sampler     string `json:"sampler"`
	Seed        uint64 `json:"seed"`
	GlobalBatch int    `json:"batch"`          // BatchSize times World.Size
	DropLast    bool   `json:"drop,omitempty"` //
	Transforms  string `json:"tf,omitempty"`   // digest of the Transforms that have an ID
	Collate     string `json:"co,omitempty"`   // the ID of Collate
	Epoch       int    `json:"epoch"`
	Step        int    `json:"step"` // first batch of Epoch that was not handed out
	// later steps that were handed out, with Unordered: a hexadecimal number whose bit i is step Step+i
	Done string `json:"done,omitempty"`
	// weights of a sampler.Mix that SetWeights has set, and what was drawn before them
	Weights []sampler.MixWeights `json:"weights,omitempty"`
	// of a sampler.Mix, unless it takes more than 1.5 KB: for Mixed, which needs no dataset
	Mix *sampler.Mixture `json:"mix,omitempty"`
}

const stateVersion = 1

// maxName is the most characters of a name in a State; longer names are cut and completed by a
// digest.
const maxName = 32

// State returns where the Loader is. A batch counts as handed out once the loop body has it, so
// that a State taken at the end of the body resumes at the next batch. After the last batch of an
// epoch, the State is the start of the next epoch. State copies a few words under the schedule's
// lock, and any goroutine may call it at any time.
func (ld *Loader) State() State {
	at, _ := ld.schedule.At()
	st := ld.setup.identity
	st.Epoch, st.Step, st.Done = at.Epoch, at.Step, at.Early.String()
	st.Weights = ld.setup.order.Load().weights
	return st
}

// Bytes of JSON that the weights of a State may have, and its mixture.
const (
	maxWeights = 8 << 10
	maxMixture = 3 << 9
)

// Mixed returns how many records of each source of a [sampler.Mix] came before the State, in all epochs.
func (st State) Mixed() ([]MixedStats, error) {
	if st.Mix == nil || st.Epoch < 0 || st.Step < 0 {
		return nil, errors.New("the state has no mixture: its sampler is not a Mix, or has too many sources for a small state; " +
			"the statistics of the loader have the counts")
	}
	m, err := sampler.NewMix(st.Mix.Sizes, st.Mix.MixOptions)
	if err != nil {
		return nil, err
	}
	of := sampler.Sampler(m)
	if len(st.Weights) > 0 {
		if of, _, err = sampler.Reweigh(m, st.Weights, 0); err != nil {
			return nil, err
		}
	}
	return mixed(sampler.MixOf(of), st.Epoch, st.Step, st.DropLast), nil
}

// SetWeights makes a [sampler.Mix] draw by other weights from a step on. Steps count over epochs:
// the step of a batch is its epoch times Batches plus its number there. Weights that were set for
// later steps are forgotten. The State contains the weights, so that a resumed run draws the same.
// All ranks must set the same weights for the same step.
//
// It is an error to set weights for a step whose batch was handed out, and while an epoch is
// iterated: leave the loop, and begin another with Epochs, which continues at the next batch.
// Workers may have filled batches of later steps in advance, and those would have the old weights.
func (ld *Loader) SetWeights(weights []float64, step int) error {
	st := ld.State()
	next := st.Epoch*ld.Batches(st.Epoch) + st.Step
	if st.Done != "" {
		next += schedule.MaxDisplacement
	}
	if step < next {
		return fmt.Errorf("loader: weights for step %d: the next one is %d; set them for that or a later one", step, next)
	}
	kept := slices.Clone(st.Weights)
	kept = slices.DeleteFunc(kept, func(w sampler.MixWeights) bool { return w.Step >= step })
	st.Weights = append(kept, sampler.MixWeights{Step: step, Weights: slices.Clone(weights)})
	if err := ld.seek(st); err != nil {
		return fmt.Errorf("loader: weights for step %d: %w", step, err)
	}
	return nil
}

// identify returns the State at the start of the run.
func (o Options) identify(src Source, can Capabilities) State {
	st := State{
		Version: stateVersion,
		Dataset: short(can.ID()), Generations: generationsOf(can), Records: src.Len(),
		Sampler: short(sampler.ID(o.Sampler)), Seed: o.Seed,
		GlobalBatch: o.shares().Global(), DropLast: o.DropLast,
		Transforms: o.transformsID(), Collate: short(o.Collate.ID),
	}
	if m := sampler.MixOf(o.Sampler); m != nil {
		of := m.Mixture()
		if text, err := json.Marshal(of); err == nil && len(text) <= maxMixture {
			st.Mix = &of
		}
	}
	return st
}

// transformsID returns a digest of all transforms that are Identifiers. Fields are sorted by name,
// because the order of a Go map changes from run to run.
func (o Options) transformsID() string {
	var ids []string
	for _, name := range slices.Sorted(maps.Keys(o.Transforms)) {
		if t, ok := o.Transforms[name].(Identifier); ok {
			ids = append(ids, name, t.ID())
		}
	}
	if ids == nil {
		return ""
	}
	return digest.Of(ids)
}

// short cuts a long name and completes it by a digest: two long names stay different, and a State
// stays small.
func short(name string) string {
	if len(name) > maxName {
		return name[:maxName-17] + "~" + digest.Of(name)[:16]
	}
	return name
}

// Resume returns a Loader that continues after the batches that st counts: with Epochs, or with Epoch and the number
// st.Epoch. It may have any number of workers, and a World of another size if the global batch stays the same, and Src
// may be another generation of the dataset if its fields have the same records. Resume refuses the State of another
// run, and says in what the two runs differ. Resume takes as long as New.
func Resume(src Source, opts Options, st State) (*Loader, error) {
	ld, err := New(src, opts)
	if err != nil {
		return nil, err
	}
	if err := ld.seek(st); err != nil {
		return nil, fmt.Errorf("loader: resume: %w", err)
	}
	return ld, nil
}

// seek moves the Loader to where st was taken. The schedule's lock is held meanwhile, so that no
// loop begins between the check and the move.
func (ld *Loader) seek(st State) error {
	return ld.schedule.Seek(func() (schedule.Position, error) {
		at, err := ld.setup.position(st)
		if err != nil {
			return at, err
		}
		return at, ld.setup.reweigh(st)
	})
}

// reweigh sets the weights of a State.
func (c *setup) reweigh(st State) error {
	to := &weighted{Sampler: c.opts.Sampler}
	if len(st.Weights) > 0 {
		var err error
		at := st.Epoch*c.batches(st.Epoch) + st.Step
		if to.Sampler, to.weights, err = sampler.Reweigh(c.opts.Sampler, st.Weights, at); err != nil {
			return err
		}
		if text, err := json.Marshal(to.weights); err != nil || len(text) > maxWeights {
			return fmt.Errorf("weights have %d bytes in a state, and %d are the most; set fewer in advance, or for fewer "+
				"sources", len(text), maxWeights)
		}
	}
	c.order.Store(to)
	return nil
}

// position returns where st was taken, if st belongs to the run of c. The error names everything in
// which the runs differ.
func (c *setup) position(st State) (at schedule.Position, err error) {
	if st.Version != stateVersion {
		return at, fmt.Errorf("the state has version %d; this is %d", st.Version, stateVersion)
	}
	var errs []error
	compare := func(what string, then, now any) {
		if then != now {
			errs = append(errs, fmt.Errorf("the state is of another %s: %v, now %v", what, shown(then), now))
		}
	}
	id := c.identity
	if same, err := c.sameRecords(st); err != nil {
		errs = append(errs, fmt.Errorf("the state is of another dataset: %w", err))
	} else if !same {
		compare("dataset", st.Dataset, id.Dataset)
	}
	compare("number of records", st.Records, id.Records)
	compare("sampler", st.Sampler, id.Sampler)
	compare("seed", st.Seed, id.Seed)
	compare("global batch (batch size times world size)", st.GlobalBatch, id.GlobalBatch)
	compare("setting of drop last", st.DropLast, id.DropLast)
	compare("pipeline of transforms", st.Transforms, id.Transforms)
	compare("collate function (batch transforms)", st.Collate, id.Collate)
	if err := errors.Join(errs...); err != nil {
		return at, err
	}
	early, err := schedule.ParseTicks(st.Done)
	steps := c.batches(st.Epoch)
	switch {
	case err != nil || st.Step < 0 || st.Step > steps:
		return at, fmt.Errorf("the state is corrupt: step %d of %d, done %.40q", st.Step, steps, st.Done)
	case st.Step == steps:
		return schedule.Position{Epoch: st.Epoch + 1}, nil
	}
	return schedule.Position{Epoch: st.Epoch, Step: st.Step, Early: early}, nil
}

// generationsOf returns the numbers of the Source's generations, in the form that a State has.
func generationsOf(can Capabilities) string {
	_, numbers := can.Generations()
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}

// sameRecords reports whether the datasets of a State have the records of the Source: they are the
// same datasets, or other generations with the same records. A dataset that records were appended
// to after the checkpoint is still refused, because the order is a function of the number of
// records.
func (c *setup) sameRecords(st State) (bool, error) {
	if st.Dataset == c.identity.Dataset {
		return true, nil
	}
	if st.Dataset == "" || st.Generations == "" || c.can.Generation == nil {
		return false, nil
	}
	folders, now := c.can.Generation.Generations()
	then := make([]int, 0, len(now))
	for text := range strings.SplitSeq(st.Generations, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return false, fmt.Errorf("the state is corrupt: generations %.40q", st.Generations)
		}
		then = append(then, n)
	}
	if len(then) != len(now) || slices.Equal(then, now) {
		return false, nil
	}
	id, err := c.can.Generation.IDIn(then)
	if short(id) == st.Dataset || id == "" {
		return err == nil, err
	}
	var open []string
	for i, folder := range folders {
		if then[i] != now[i] {
			open = append(open, fmt.Sprintf("%s@%d, where generation %d is open now", folder, then[i], now[i]))
		}
	}
	return false, fmt.Errorf("%s, now %s; if it is of earlier or later records of this one, open %s",
		st.Dataset, c.identity.Dataset, strings.Join(open, ", and "))
}

// shown returns a value of a State for an error message. A State may come from a damaged file, so
// that long or unprintable text is cut and quoted.
func shown(v any) any {
	s, ok := v.(string)
	if !ok || len(s) <= 100 && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return v
	}
	return fmt.Sprintf("%.100q", s)
}

// Seek moves the Loader to where st was taken, as Resume makes one there: Epochs then continues at
// the next batch, and so does Epoch with the number st.Epoch. No epoch may be iterated meanwhile.
// It refuses the State of another run; the Loader then is where it was.
func (ld *Loader) Seek(st State) error {
	if err := ld.seek(st); err != nil {
		return fmt.Errorf("loader: seek: %w", err)
	}
	return nil
}
