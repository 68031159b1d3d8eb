package source

// Kinds are the values of Options.Kind, "auto" aside.
var Kinds = []string{"imagefolder", "csv", "jsonl", "tar", "zip", "parquet", "arrow", "tfrecord", "mds", "tokens",
	"zarr", "npy", "npz", "safetensors", "bin", "idx", "cifar", "hdf5", "flat", "view", "coco", "voc", "yolo", "maskfolder",
	"labelme"}

// Options configures Open.
type Options struct {
	Kind   string // one of Kinds; "" or "auto" finds out
	Found  string // what Detect says of the path, if it was called already
	Fields string // which columns become which fields, see ParseFields; "" for all

	// Records says where the records are in a source whose arrays have a group or a file for each of several units: see
	// package unit. "" is what the path says, see SplitRecords, or finds out.
	Records string

	// Only are the fields that are needed of a source with units; nil means all. Others may then be of any length.
	Only []string

	// Missing is what fields have where cells of CSV and JSON lines are empty, or values of Parquet and Arrow are null:
	// "nan" of floats, or a value, or the name of a class. Texts and lists are empty there. "" and "skip" mean none: such
	// values are ErrMissing.
	Missing string

	// Split is the split that is needed of a file that lists the units of its splits; any other name means all units.
	Split string

	// NoNames leaves out the field of source names that a dataset has.
	NoNames bool

	// Places prepares for samples in any order: names in folders are held from the first listing on, and members of
	// archives that are not compressed are read when their sample is, as often as it is read. Without it, these are read
	// in the order of the archive, and held by their sample.
	Places bool

	// Blocks prepares for Blocks of a [Blocked] source: of tables that are read to find out types, up to 256 MiB of values
	// are held until Close.
	Blocks bool

	// Outside allows paths and links in the source that lead out of its folder. Without it, they are refused: see
	// [Root].
	Outside bool

	// Orient is whether image files are turned as EXIF says, where a source compares sizes.
	Orient bool

	// Seen is called now and then with the number of samples looked at, where Open has to look
	// at all. It may be nil.
	Seen func(n int64)

	// IsImage reports from a file's first bytes (up to 16) whether it is an image; nil takes
	// names for it.
	IsImage func(head []byte) bool
}
