package write

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/lease"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/store"
)

// ErrLost is the error of CommitGeneration when another writer has committed the generation of that number first.
var ErrLost = errors.New("another change has become that generation")

// ErrUnknown marks a commit whose request failed and whose manifest could not be read back, so its outcome is unknown.
// No file that the manifest lists may be removed then.
var ErrUnknown = errors.New("it may have been committed, and cannot be read")

// errBehind marks a commit that succeeded and did not replace manifest.json. Readers of penstock find the generation
// anyway.
var errBehind = errors.New("is committed, but the manifest in the folder, which other programs read, could not be " +
	"replaced yet; the next change does that")

// Committed returns the error of a commit that has succeeded and then failed with err to replace the manifest in the
// folder; nil if err is nil.
func Committed(generation int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("generation %d %w: %w", generation, errBehind, err)
}

// mayBeListed reports whether a generation may list the files of a change that ended with err. Such files must stay.
func mayBeListed(err error) bool { return errors.Is(err, ErrUnknown) || errors.Is(err, errBehind) }

// CommitGeneration makes m the newest generation of the dataset at path. m's files are in the folder and on disk, and
// base is the newest generation so far. One link gives the manifest the name of the generation, and is the
// compare-and-swap of concurrent writers: if the name exists, the error is ErrLost, and nothing has changed.
//
// The manifest is on disk before the link, and manifest.json is replaced after it. A crash before the link leaves a
// temporary file, which Prune removes. A crash after the link leaves an older manifest.json, which the next change or
// [Forward] replaces.
//
// NFS can report that a link failed although the server made it. The manifest has a random number in it, by which a
// writer then recognizes its own commit.
func CommitGeneration(path string, base, m *store.Manifest) error {
	root, err := openDataset(path)
	if err != nil {
		return err
	}
	defer root.Close()
	files, err := EncodeGeneration(root.FS(), m)
	if err != nil {
		return err
	}
	text := files[len(files)-1].Text
	held, err := holdGenerations(root)
	if err != nil {
		return err
	}
	defer held.Close()
	if err := stillThere(path, root); err != nil {
		return err
	}
	if err := keepGeneration(root, base); err != nil {
		return err
	}
	temporary := layout.Generations + "/." + RandomTag() + ".new"
	if err := writeSynced(root, temporary, text); err != nil {
		return errors.Join(err, removeIfThere(root, temporary))
	}
	err = claim(root, func(to string) error { return root.Link(temporary, to) }, m.Generation, text)
	if err == nil {
		err = Committed(m.Generation, forward(root, m.Generation))
	}
	return errors.Join(err, removeIfThere(root, temporary))
}

// manifestOf returns the path of the manifest in an open folder, flat or of Zarr, like [layout.Manifest] for a path.
func manifestOf(root *os.Root) string {
	if _, err := root.Lstat(layout.ManifestName); err != nil {
		if _, err := root.Lstat(layout.ZarrManifest); err == nil {
			return layout.ZarrManifest
		}
	}
	return layout.ManifestName
}

// holdGenerations makes the folder of generations if it is missing, and locks it together with other writers until the
// file is closed. Prune locks it alone, so no generation is removed meanwhile.
func holdGenerations(root *os.Root) (*os.File, error) {
	if err := root.Mkdir(layout.Generations, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	f, err := root.Open(layout.Generations)
	if err != nil {
		return nil, err
	}
	if err := lease.Wait(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// HoldForReplacement locks the dataset at path, a folder whose newest generation is base, until the file is closed,
// because another folder is about to take its place: a change that was committed meanwhile would be lost with the old
// folder. The error is store.ErrBusy if another process changes the dataset.
func HoldForReplacement(path string, base *store.Manifest) (*os.File, error) {
	if err := checkReplacement(path, base); err != nil {
		return nil, err
	}
	root, err := openDataset(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	held, err := holdGenerations(root)
	if err != nil {
		return nil, err
	}
	if err := lease.TryExclusive(held); err != nil {
		return nil, errors.Join(fmt.Errorf("another process changes it: %w", store.ErrBusy), held.Close())
	}
	return held, nil
}

// checkReplacement makes sure that nothing is lost when an append to Zarr at path makes a new folder, which takes the
// place of the old folder: the new folder has the newest generation only, so earlier generations and tags are
// refused.
func checkReplacement(path string, base *store.Manifest) error {
	numbers, err := store.Generations(path)
	if err != nil {
		return err
	}
	if numbers[len(numbers)-1] != base.Generation {
		return fmt.Errorf("it was changed meanwhile: %w", store.ErrBusy)
	}
	if len(numbers) > 1 {
		return fmt.Errorf("an append to Zarr makes a new folder, which would not have the earlier generations %v; "+
			"remove them first: %s: %w", numbers[:len(numbers)-1], shell.Penstock("prune", path),
			store.ErrUnsupported)
	}
	tags, err := store.Tags(path)
	if err != nil {
		return err
	}
	if len(tags) > 0 {
		return fmt.Errorf("an append to Zarr makes a new folder, which would not have the generation of tag %s; "+
			"remove that first: %s: %w", tags[0].Name, shell.Penstock("tag --remove", path, tags[0].Name),
			store.ErrUnsupported)
	}
	return nil
}

// stillThere makes sure that the open folder is still the folder at path. If another dataset has taken the place of
// the folder, a commit into the old folder would be lost, so the error is ErrLost.
func stillThere(path string, root *os.Root) error {
	there, err := os.Stat(path)
	if err != nil {
		return err
	}
	if is, err := root.Stat("."); err != nil || !os.SameFile(is, there) {
		return errors.Join(ErrLost, err)
	}
	return nil
}

// openDataset opens the folder of a dataset. path may be a symbolic link.
func openDataset(path string) (*os.Root, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(path)
}

// RandomTag returns 8 random hex digits.
func RandomTag() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // rand.Read never fails
	return hex.EncodeToString(b[:])
}

// writeSynced creates a file and returns once it is on disk. A manifest must be durable before it gets its name: after
// a power loss some file systems have the name of a file without its bytes.
func writeSynced(root *os.Root, name string, text []byte) error {
	f, err := private.Create(root, name, 0o666)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return errors.Join(err, f.Close())
	}
	return SyncFile(f)
}

// keepGeneration links the manifest of base to the name of its generation, where it stays when manifest.json is
// replaced. A link, and not a copy: readers hold locks on the file that they have read the manifest from, and Prune has
// to see these locks at the name of the generation.
func keepGeneration(root *os.Root, base *store.Manifest) error {
	name := manifestOf(root)
	text, err := root.ReadFile(name)
	if err != nil {
		return err
	}
	m, err := store.DecodeManifest(text)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case m.Generation > base.Generation:
		return ErrLost
	case m.Generation < base.Generation:
		return nil // the writer of base ended before it could replace this manifest
	}
	link := func(to string) error { return root.Link(name, to) }
	if err = claim(root, link, base.Generation, text); errors.Is(err, ErrLost) {
		return fmt.Errorf("%s and %s differ: %w", name, layout.GenerationName(base.Generation),
			store.ErrCorrupt)
	}
	return errors.Join(err, SyncRoot(root))
}

// claim gives a file on disk, whose content is text, the name of a generation by a link. If the link fails, the file
// that has the name decides: with the same content the link was made and its answer was lost, with another content
// another writer was first, which is ErrLost. If no file has the name, the file system has no links, and the file is
// copied.
func claim(root *os.Root, link func(to string) error, generation int, text []byte) error {
	to := layout.GenerationName(generation)
	linked := link(to)
	if linked != nil {
		there, err := root.ReadFile(to)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if linked = copyNew(root, to, text); linked != nil {
				return linked
			}
		case err != nil:
			return fmt.Errorf("generation %d: %w: %w", generation, ErrUnknown, err)
		case !bytes.Equal(there, text):
			return ErrLost
		}
	}
	return syncGenerations(root)
}

// copyNew is claim on a file system without links. Looking for the name and renaming to it are two steps there, so two
// writers at the same moment can both succeed.
func copyNew(root *os.Root, name string, text []byte) error {
	temporary := layout.Generations + "/." + RandomTag() + ".new"
	if err := writeSynced(root, temporary, text); err != nil {
		return err
	}
	if _, err := root.Lstat(name); err == nil {
		return errors.Join(ErrLost, root.Remove(temporary))
	}
	return root.Rename(temporary, name)
}

func syncGenerations(root *os.Root) error { return syncFolder(root, layout.Generations) }

// syncFolder makes the names in a folder durable. Syncing a file does not sync its name on ext4 and XFS.
func syncFolder(root *os.Root, name string) error {
	folder, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer folder.Close()
	return SyncRoot(folder)
}

// forward replaces the manifest in a folder by the manifest of a generation, by one rename: other programs, which know
// no generations, read the old or the new manifest at any time. The new manifest is another link to the generation's
// file where possible, so that a lock holds under both names. In Zarr the metadata that belongs to the manifest is
// replaced before it.
func forward(root *os.Root, generation int) error {
	name := manifestOf(root)
	if name == layout.ZarrManifest {
		text, err := root.ReadFile(layout.GenerationName(generation))
		if err != nil {
			return err
		}
		if err := replaceMetadata(root, text); err != nil {
			return err
		}
	}
	from, temporary := layout.GenerationName(generation), layout.Generations+"/."+RandomTag()+".now"
	if err := root.Link(from, temporary); err != nil {
		text, readErr := root.ReadFile(from)
		if readErr != nil {
			return readErr
		}
		if err := writeSynced(root, temporary, text); err != nil {
			return err
		}
	}
	if err := root.Rename(temporary, name); err != nil {
		return errors.Join(err, removeIfThere(root, temporary))
	}
	// a rename over another link to the same file does nothing and leaves the temporary name
	err := errors.Join(removeIfThere(root, temporary), syncFolder(root, filepath.Dir(name)))
	if err != nil || name == layout.ManifestName {
		return err
	}
	return retryForward(root, generation)
}

// retryForward moves the manifest again after a concurrent writer moved it first. The metadata of Zarr is several
// files, which two writers may leave in a mix of both generations; the last writer replaces all of them by the files of
// the newest generation.
func retryForward(root *os.Root, generation int) error {
	newest := generation
	for {
		if _, err := root.Lstat(layout.GenerationName(newest + 1)); err != nil {
			break
		}
		newest++
	}
	text, err := root.ReadFile(layout.GenerationName(newest))
	if err != nil {
		return err
	}
	m, err := store.DecodeManifest(text)
	if err != nil {
		return err
	}
	is, err := root.ReadFile(layout.ZarrManifest)
	same := bytes.Equal(is, text)
	for _, name := range []string{layout.ZarrNode, manifestNode} {
		node, nodeErr := root.ReadFile(name)
		same, err = same && m.Metadata[name] == layout.HexCRC(layout.CRC32C(node)), errors.Join(err, nodeErr)
	}
	if err != nil || same {
		return err
	}
	return forward(root, newest)
}

// Forward replaces the manifest in the folder of the dataset at path by the manifest of the newest generation, if a
// writer was killed before it could do so, and returns the newest manifest.
func Forward(path string) (*store.Manifest, error) {
	m, err := store.ReadManifest(path)
	if err != nil {
		return nil, err
	}
	text, err := fs.ReadFile(vfs.Folder(path), layout.Manifest(path))
	if err != nil {
		return nil, err
	}
	if old, err := store.DecodeManifest(text); err == nil && old.Generation == m.Generation {
		return m, nil
	}
	root, err := openDataset(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return m, forward(root, m.Generation)
}

// Taken returns the names of all files that generations of the dataset at path list, which new files must not get. A
// manifest that cannot be read may list any file of the folder, so all names in the folder count then.
func Taken(path string) (map[string]bool, error) {
	numbers, err := store.Generations(path)
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	for _, n := range numbers {
		m, err := store.ReadManifest(fmt.Sprintf("%s@%d", path, n))
		if Unreadable(err) {
			if err = addEntries(names, path); err == nil { // its files are among these
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		for _, s := range m.Shards {
			for _, f := range s.Files {
				names[f.Name] = true
			}
		}
	}
	return names, nil
}

// Unreadable reports whether err says that a manifest is corrupt, or of a newer version.
func Unreadable(err error) bool {
	return errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrUnsupported)
}

// addEntries adds the names of all files and folders at path.
func addEntries(names map[string]bool, path string) error {
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		names[e.Name()] = true
	}
	return err
}

// createTag makes the file of a tag of m's generation, and fails with store.ErrExist if the tag exists. The folder of
// generations is locked, so Prune cannot remove the generation before the tag protects it. The file gets its name by a
// link, which never replaces another tag.
func createTag(path string, m *store.Manifest, name string, text []byte) error {
	root, err := openDataset(path)
	if err != nil {
		return err
	}
	defer root.Close()
	held, err := holdGenerations(root)
	if err != nil {
		return err
	}
	defer held.Close()
	if _, err := root.Lstat(layout.GenerationName(m.Generation)); err != nil {
		if err := keepGeneration(root, m); err != nil {
			return err
		}
	}
	if err := root.Mkdir(layout.Tags, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	temporary := layout.Generations + "/." + RandomTag() + ".new"
	if err := writeSynced(root, temporary, text); err != nil {
		return err
	}
	err = root.Link(temporary, tagFile(name))
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("the tag %w; remove it first, or choose another name", store.ErrExist)
	}
	return errors.Join(err, removeIfThere(root, temporary), syncGenerations(root))
}

func tagFile(name string) string { return layout.Tags + "/" + name + ".json" }

// removeTag removes the file of a tag.
func removeTag(path, name string) error {
	root, err := openDataset(path)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Remove(tagFile(name)); err != nil {
		return layout.WithoutPath(err)
	}
	return syncGenerations(root)
}
