package part

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store/write"
)

// WriteDurably writes a file with all its bytes, or not at all. When it returns without error, the file is on disk
// permanently. If another writer has that name at the same time, the error is store.ErrBusy.
func WriteDurably(path string, data []byte, mode fs.FileMode) error {
	return WriteDurablyBy(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteDurablyBy is WriteDurably for the bytes that fill writes.
func WriteDurablyBy(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	stage, err := write.OpenStage(path, write.StageOptions{Overwrite: true})
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	if err := writeSynced(stage.Folder.Root(), name, mode, fill); err != nil {
		return errors.Join(err, stage.Abort())
	}
	return errors.Join(stage.PublishFile(name), stage.Abort())
}

// writeSynced writes a file and returns when it is on disk. Its name is durable only after the folder is synced, too.
func writeSynced(folder *os.Root, name string, mode fs.FileMode, fill func(io.Writer) error) error {
	f, err := private.Create(folder, name, mode)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	return errors.Join(fill(w), w.Flush(), f.Sync(), f.Close())
}
