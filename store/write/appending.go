package write

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strconv"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/store"
)

// Append begins an append like [CreateAppend], in the staging directory that home.Spool chooses. Closing the writer
// also removes the folders that Spool made for it.
func Append(home Home, schema store.Schema, opts ShardOptions) (store.Writer, error) {
	dest, free, err := home.Spool(appendSpool)
	if err != nil {
		return nil, fmt.Errorf("store: append to %q: %w", home.Folder().Name, err)
	}
	w, err := createAppend(home, dest, schema, opts)
	if err != nil {
		free()
		return nil, fmt.Errorf("store: append to %q: %w", home.Folder().Name, err)
	}
	w.free = free
	return w, nil
}

// appendSpool stands in for the name of a field in Home.Spool: the staging directory of an append is found like the
// staging directory of a column.
const appendSpool = "+records"

// CreateAppend begins an append to a flat dataset. It reads Splits, ShardBytes and Journal of opts. The shards are
// built at dest, a path of this machine, and become files of the dataset on Commit, under names with random digits, so
// that two writers never choose one name. If another writer commits meanwhile, Commit lists the new shards after the
// other writer's shards.
//
// With a Journal that says Resume, CreateAppend continues an interrupted append from the generation that the append
// began with.
func CreateAppend(home Home, dest string, schema store.Schema, opts ShardOptions) (store.Writer, error) {
	w, err := createAppend(home, dest, schema, opts)
	if err != nil {
		return nil, fmt.Errorf("store: append to %q: %w", home.Folder().Name, err)
	}
	return w, nil
}

// createAppend is CreateAppend without the name of the dataset in its errors.
func createAppend(home Home, dest string, schema store.Schema, opts ShardOptions) (*writer, error) {
	if err := errors.Join(schema.Validate(), home.Check()); err != nil {
		return nil, err
	}
	stage, err := OpenStage(dest, StageOptions{Keep: opts.Journal != nil})
	if err != nil {
		return nil, err
	}
	a, err := newAppending(home, stage, schema, opts)
	if err != nil {
		return nil, errors.Join(err, stage.Leave())
	}
	return &writer{stage: stage, records: a.shards, container: a, name: home.Folder().Name}, nil
}

// appending is the Container of an append whose shards are published by a Home.
type appending struct {
	home   Home
	stage  *Stage
	base   *store.Manifest // the generation after whose shards the new shards are numbered
	schema store.Schema    // of the appended records; a list of classes may be longer than in base
	splits []string
	shards *ShardWriter
}

// newAppending begins at the newest generation. With a journal that says Resume, it begins at the generation of the
// interrupted append: the shards in the stage, and their file names, were numbered after the shards of that generation.
func newAppending(home Home, stage *Stage, schema store.Schema, opts ShardOptions) (*appending, error) {
	a := &appending{home: home, stage: stage, schema: schema, splits: opts.Splits}
	var err error
	if a.base, err = a.begunWith(opts.Journal); err != nil {
		return nil, err
	}
	if a.base.Metadata != nil {
		return nil, errZarrAppend(home.Folder().Name)
	}
	whole, err := Extend(a.base, schema, opts.Splits)
	if err != nil {
		return nil, err
	}
	opts.Base = a.base
	a.shards, err = NewShardWriter(stage, whole, opts)
	return a, err
}

func errZarrAppend(name string) error {
	return fmt.Errorf("it is Zarr, whose arrays would be written again with more records; make a flat dataset of it, "+
		"which takes more: %s: %w", shell.Rewrite(name, ""), store.ErrUnsupported)
}

// begunWith returns the generation that the append in the stage began with, or the newest one for a new append. If
// Prune has removed that generation, the append cannot be resumed: the saved state of statistics and identity includes
// its records.
func (a *appending) begunWith(j *store.Journal) (*store.Manifest, error) {
	generation := ""
	if j != nil && j.Resume {
		generation = BegunWith(a.stage.Folder, baseGeneration)
	}
	m, err := a.home.Folder().Manifest(generation)
	if generation != "" && errors.Is(err, fs.ErrNotExist) {
		err = notResumed(fmt.Errorf("generation %s, with which it was begun, was removed", generation))
	}
	return m, err
}

// Close implements Container.
func (a *appending) Close() error { return a.shards.Close() }

// Commit implements Container. It finishes and closes the shards, publishes their files, and commits the generation
// that lists them last. A crash before the last step leaves files that no generation lists, which Prune removes; no
// generation ever lists a file that is missing.
func (a *appending) Commit(info store.Info) (*store.Manifest, error) {
	built, err := a.shards.Finish(info)
	if err == nil {
		err = a.shards.Close()
	}
	if err != nil {
		return nil, err
	}
	files, shards := tagged(built.Shards[len(a.base.Shards):])
	m, err := a.publish(files, func(base *store.Manifest) (*store.Manifest, error) { return a.onto(base, shards, info) })
	if err != nil {
		return nil, err
	}
	return m, a.stage.Abort()
}

// tagged gives the files of shards names with a random tag, which no file of the dataset has ever had. Two appends that
// run at once number their shards alike, and the tag keeps one from replacing the files of the other.
func tagged(shards []store.Shard) (files []Published, out []store.Shard) {
	tag := RandomTag()
	for _, s := range shards {
		s.Files = slices.Clone(s.Files)
		for k := range s.Files {
			from := s.Files[k].Name
			s.Files[k].Name = layout.Tagged(from, tag)
			files = append(files, Published{from, s.Files[k]})
		}
		out = append(out, s)
	}
	return files, out
}

// publish makes the files part of the dataset, announces a file of the append in the stage, and commits the
// generation that lists the files. After a failed commit the files are removed again, unless the commit may have
// succeeded: a generation could list them.
func (a *appending) publish(files []Published, next func(*store.Manifest) (*store.Manifest, error)) (*store.Manifest,
	error) {
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	err := a.home.Publish(a.stage, files)
	if err == nil {
		err = a.announce(names[0])
	}
	var m *store.Manifest
	if err == nil {
		m, err = commit(a.home, next)
	}
	if err != nil && !mayBeListed(err) {
		err = errors.Join(err, a.home.Unpublish(names))
	}
	return m, err
}

// onto returns the manifest of the generation that has the shards after the records of base. If another writer changed
// the dataset since the append began, statistics and identity are computed again by replay: both depend on the order of
// records, and the saved state follows the older generation.
func (a *appending) onto(base *store.Manifest, shards []store.Shard, info store.Info) (*store.Manifest, error) {
	whole, err := Extend(base, a.schema, a.splits)
	if err != nil {
		if base.Generation != a.base.Generation {
			err = fmt.Errorf("it was changed in generation %d, after this append was begun: %w", base.Generation, err)
		}
		return nil, err
	}
	b := a.shards.manifest
	if !bytes.Equal(base.BuilderState, a.base.BuilderState) || !reflect.DeepEqual(whole, a.shards.schema) {
		if b, err = a.replay(base, whole); err != nil {
			return nil, err
		}
	}
	m := b.Manifest(info)
	a.place(m, base, shards)
	if err := follow(m, base); err != nil {
		return nil, err
	}
	m.Parent, m.Change = base.Generation, stamped(store.Change{Operation: "append"})
	setVersion(m)
	return m, m.Validate()
}

// place lists the new shards after the shards of base, numbers their records from base.Records on, and adds the new
// records to the splits.
func (a *appending) place(m, base *store.Manifest, shards []store.Shard) {
	next := base.Records
	m.Shards = slices.Clone(base.Shards)
	for i := range a.shards.sections {
		first := next
		for range a.shards.sections[i].shards {
			s := shards[0]
			s.First, next = next, next+s.Count
			m.Shards, shards = append(m.Shards, s), shards[1:]
		}
		if len(a.splits) > 0 {
			addSplit(m, a.splits[i], base, first, next)
		}
	}
}

// announcedName is the file in a staging directory that names one file of an append about to be committed. After a
// crash, the next attempt looks for that file in newer generations, and so learns whether the commit happened.
const announcedName = "build.append"

// announcement is the content of the file announcedName, as JSON.
type announcement struct {
	Generation int    `json:"generation"` // the generation that the append began with
	File       string `json:"file"`       // a file that the generation of this append lists, if it was committed
}

// announce records in the staging directory a file that the next manifest will list, before the commit. The answer to a
// commit can be lost, by a crash or by a network: committedBefore then finds out on the next attempt whether the commit
// happened, so that no record is appended twice. The staging directory is synced here, because a power cut must not
// lose the announcement.
func (a *appending) announce(file string) error {
	text, err := json.Marshal(announcement{a.base.Generation, file})
	if err == nil {
		err = removeIfThere(a.stage.Folder.root, announcedName)
	}
	if err == nil {
		err = a.stage.Folder.WriteFile(announcedName, text)
	}
	return errors.Join(err, a.stage.Folder.sync())
}

// DiscardCommitted reports whether an append that a killed process left at dest was committed before the kill. If so,
// it removes the staging directory: resuming the append would add the same records again.
func DiscardCommitted(home Home, dest string) (bool, error) {
	if !Unfinished(dest) {
		return false, nil
	}
	stage, err := OpenStage(dest, StageOptions{Keep: true})
	if err != nil {
		return false, err
	}
	done, err := committedBefore(home, stage)
	if done && err == nil {
		return true, stage.Abort()
	}
	return false, errors.Join(err, stage.Release())
}

// committedBefore reports whether an append whose outcome is unknown was committed: whether a generation newer than the
// generation that the append began with lists the announced file. The file name has random digits, so no other append
// has the same name. A manifest that cannot be read is skipped.
func committedBefore(home Home, stage *Stage) (bool, error) {
	text, err := stage.Folder.root.ReadFile(announcedName)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var was announcement
	if err == nil {
		err = json.Unmarshal(text, &was)
	}
	if err != nil {
		return false, err
	}
	numbers, err := home.Folder().Generations()
	if err != nil {
		return false, err
	}
	for _, n := range slices.Backward(numbers) {
		if n <= was.Generation {
			break
		}
		m, err := home.Folder().Manifest(strconv.Itoa(n))
		if Unreadable(err) {
			continue
		}
		if err != nil {
			return false, err
		}
		if NamesOf(m)[was.File] {
			return true, nil
		}
	}
	return false, nil
}
