package prepare

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/execute"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/store/hdf5/view"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/store/zarr"
	"github.com/penstock/penstock/tensor"
)

// writing creates the writer of a run, and removes leftovers next to the dataset.
type writing struct{ run *run }

// create returns the writer of the dataset.
func (o writing) create(j *execute.Job) (store.Writer, error) {
	journal, err := o.journal(j)
	if err != nil {
		return nil, err
	}
	w, err := o.newWriter(j, journal)
	// files that another process builds belong to it, even if it ends now
	if err != nil && !o.run.config.Resume && !errors.Is(err, store.ErrBusy) {
		err = errors.Join(err, o.run.config.discard())
	}
	return w, err
}

// newWriter opens the writer of the format. An append in a bucket builds its shards here and sends them on commit.
func (o writing) newWriter(j *execute.Job, journal *store.Journal) (store.Writer, error) {
	if o.run.task.adopt != nil {
		return o.run.task.adopt()
	}
	c, splits := o.run.config, o.splits()
	if c.DatasetFormat() == part.HDF5 {
		return newCompressing(o.run.progress, o.run.space.need, c.Append).createHDF5(c, j.Schema, hdf5.Options{
			Records: max(0, o.run.info.Count-o.run.skip), Overwrite: c.Overwrite, Append: c.Append, Splits: splits,
			Journal: journal,
		})
	}
	if c.DatasetFormat() == part.Zarr {
		return newCompressing(o.run.progress, o.run.space.need, c.Append).createZarr(c, j.Schema, zarr.Options{
			ShardBytes: c.ShardBytes, Overwrite: c.Overwrite, Append: c.Append, Splits: splits, Journal: journal,
		})
	}
	if c.appendTo != nil {
		return write.CreateAppend(c.appendTo.home, c.Dest, j.Schema, write.ShardOptions{
			ShardBytes: c.ShardBytes, Splits: splits, Journal: journal,
		})
	}
	w, err := flat.Create(c.Dest, j.Schema, flat.Options{
		ShardBytes: c.ShardBytes, Overwrite: c.Overwrite, Append: c.Append, Splits: splits, Journal: journal,
	})
	if err != nil {
		return nil, err
	}
	return c.uploader.Follow(w, c.Dest, splits)
}

// splits returns the names of the splits: the Config's, or the source's.
func (o writing) splits() []string {
	if o.run.config.Split == nil {
		return o.run.info.Splits
	}
	var names []string
	for _, s := range o.run.config.Split {
		names = append(names, s.Name)
	}
	return names
}

// journal returns the inputs that a later run must share with this one to continue it.
// The treatment of bad samples may differ: up to here it made no difference.
func (o writing) journal(j *execute.Job) (*store.Journal, error) {
	recipe, err := o.run.recipeOf(j)
	if err != nil {
		return nil, err
	}
	delete(recipe.Options, "on-error")
	delete(recipe.Options, "max-errors")
	options, err := json.Marshal(recipe.Options)
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(o.run.config.Source)
	if err != nil {
		return nil, err
	}
	if o.run.config.producer != nil {
		path = StreamName
	}
	inputs := map[string]string{
		"source": path, "kind of source": o.run.info.Kind, "number of samples": fmt.Sprint(o.run.info.Count),
		"version": recipe.Program, "decoder": imagefile.Backend(), "options": string(options),
		"transforms": string(recipe.Transforms),
	}
	if o.run.task.inputs != "" {
		inputs["part of the work"] = o.run.task.inputs
	}
	if o.run.config.producer != nil {
		inputs[fieldsInput] = string(o.run.config.producer.Fields())
		inputs[digestInput] = o.run.config.producer.Begin.Inputs
	} else if stamp := stampOf(path); stamp != "" {
		inputs["state of the source (size and time of change)"] = stamp
	}
	return &store.Journal{Inputs: inputs, Resume: o.run.config.Resume}, nil
}

// stampOf returns a string that changes with the files that path names or matches; "" for a
// folder, whose samples are compared by name.
func stampOf(path string) string {
	files, err := source.Files(path)
	if err != nil {
		return ""
	}
	h := sha256.New()
	for _, name := range files {
		info, err := vfs.Stat(name)
		if err != nil || info.IsDir() {
			return ""
		}
		fmt.Fprintf(h, "%s\x00%d %d\n", name, info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// leave closes the writer. Files of a failed run stay if they are worth
// resuming.
func (o writing) leave(w store.Writer, failed error) error {
	err := w.Close()
	if failed == nil {
		return err
	}
	if o.run.kept = max(o.run.kept, w.Kept().Records); o.run.kept > 0 || w.Kept().Resumed {
		return err
	}
	return errors.Join(err, o.run.config.discard())
}

// discard removes leftovers next to the destination.
func (c Config) discard() error {
	stage, err := write.OpenStage(c.Dest, write.StageOptions{Overwrite: c.Overwrite,
		Append: c.Append && c.appendTo == nil})
	if err != nil {
		return nil // the reason why the writer could not open it holds here too, and is the error
	}
	return stage.Abort()
}

// skippedName is the list of samples that were left out, next to the dataset.
func (c Config) skippedName() string { return filepath.Clean(c.Dest) + ".skipped.jsonl" }

// writeSkipped lists the samples that were left out, with the reasons, one a line. The list is
// durable before the dataset is. Without any, a list of an earlier run is removed.
func (o writing) writeSkipped() error {
	passes, left := []*runLog{o.run.log}, int64(0)
	if o.run.collector != nil {
		passes = []*runLog{o.run.collector, o.run.log}
	}
	for _, b := range passes {
		left += int64(len(b.skipped)) + b.repeated.Len()
	}
	switch {
	case o.run.task.quiet:
		return nil
	case left == 0:
		return o.run.config.removeSkipped()
	}
	return part.WriteDurablyBy(o.run.config.skippedName(), 0o666, func(w io.Writer) error {
		for _, b := range passes {
			if err := b.writeLeft(w); err != nil {
				return err
			}
		}
		return nil
	})
}

// removeSkipped removes the list, and the temporary file of a process that was killed while writing it.
func (c Config) removeSkipped() error {
	stage, err := write.OpenStage(c.skippedName(), write.StageOptions{Overwrite: true})
	if err != nil {
		return err
	}
	if err = os.Remove(stage.Dest()); errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, stage.Abort())
}

// writeView writes the HDF5 view of the dataset that was made, if one is requested or exists
// of the previous dataset.
func writeView(c Config) error {
	if c.Rank.Size > 0 || c.DatasetFormat() != part.Flat || c.appendTo != nil {
		return nil
	}
	path := filepath.Join(c.Dest, view.Name)
	if _, err := os.Stat(path); !c.View && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	d, err := store.OpenFlat(c.Dest)
	var data []byte
	if err == nil {
		data, err = view.Encode(d, c.Dest)
	}
	if err == nil {
		err = part.WriteDurably(path, data, 0o666)
	}
	if err != nil {
		return fmt.Errorf("the dataset is complete, but not its view: %w", err)
	}
	return nil
}

// storesNames reports whether records get the names of their samples. If the source is a dataset
// with names, these are fields of it, and no others are added.
func (o writing) storesNames(c Config) (bool, error) {
	named := slices.ContainsFunc(o.run.info.Fields, func(f source.Field) bool { return f.Content == tensor.SourceName })
	taken := slices.ContainsFunc(o.run.info.Fields, func(f source.Field) bool { return f.Name == layout.SourceNameField })
	wanted := c.Names == NamesOn
	if c.Names == NamesAuto {
		wanted = !taken && filesAreRecords(o.run.info) && !inPlace(c, o.run.info, o.splits())
		if o.run.base != nil {
			wanted = layout.SourceNames(o.run.base.Schema().Specs()) >= 0
		}
	}
	if wanted && taken && !named {
		return false, fmt.Errorf("the source has a field %q, as names of records are called; use --names off, or give the "+
			"field another name with --fields", layout.SourceNameField)
	}
	return wanted && !named, nil
}

// filesAreRecords reports whether samples are named for files or members of archives, and not only numbered.
func filesAreRecords(info source.Info) bool {
	switch info.Kind {
	case "imagefolder", "tar", "zip", "coco", "voc", "yolo", "maskfolder", "labelme":
		return true
	case "csv", "jsonl":
		return slices.ContainsFunc(info.Fields, source.Field.Image)
	}
	return false
}

// inPlace reports whether records are written to their final places in an HDF5 file. A dataset of records of variable
// length has no final places before its last record.
func inPlace(c Config, info source.Info, splits []string) bool {
	ragged := func(f source.Field) bool { return f.Image() && c.Images.KeepEncoded || !f.Image() && f.Ragged }
	return c.DatasetFormat() == part.HDF5 && info.Count > 0 && !c.Append && len(splits) == 0 &&
		c.Compress.Method != Gzip &&
		!slices.ContainsFunc(info.Fields, ragged)
}
