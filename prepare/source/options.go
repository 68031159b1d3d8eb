package source

// Kinds are the values of Options.Kind and of --from, other than "auto".
var Kinds = []string{"imagefolder", "csv", "jsonl", "tar", "zip", "parquet", "arrow", "tfrecord", "mds", "tokens",
	"zarr", "npy", "npz", "safetensors", "bin", "idx", "cifar", "hdf5", "flat", "view", "coco", "voc", "yolo", "maskfolder",
	"labelme"}

// Options configures Open.
type Options struct {
	Kind   string // one of Kinds; "" or "auto" detects the kind
	Found  string // result of Detect for the path, if the caller has it already; saves a second detection
	Fields string // which columns become which fields, in the notation of column.ParseFields; "" for all

	// Records declares where the records are if a source has a group or a file for each of several units, in the
	// notation of package unit. "" takes the declaration from the path (SplitRecords), or guesses it.
	Records string

	// Missing is the value of a field where a cell of CSV or JSON lines is empty or a value of Parquet or Arrow is
	// null: "nan" for floats, or a number, or the name of a class. Texts and lists become empty instead. "" and
	// "skip" mean no value: the missing value is an ErrMissing of its sample.
	Missing string

	// Split restricts a file that lists the units of its splits to one of the splits. A name that is not in the
	// file means all units.
	Split string

	// Divide has the lists of units that a file holds divide its records into splits: the named Lists, or without
	// names as many lists as have no unit in common.
	Divide bool
	Lists  []string

	// NoNames leaves out the field of source names of a dataset.
	NoNames bool

	// Places prepares for random access: names in folders are kept after the first listing, and members of
	// uncompressed archives are read whenever their sample is read. Without Places, members are read in the order
	// of the archive, and their sample holds their bytes.
	Places bool

	// Blocks prepares for Blocks of a [Blocked] source: a table that Open reads to find its types keeps up to 256
	// MiB of the parsed values until Close, so that Blocks need not parse them again.
	Blocks bool

	// Outside allows paths and links that lead out of the folder of the source. Without it they are refused: a
	// stranger's source could otherwise copy files of the user into a dataset. [Root] has the rules.
	Outside bool

	// Orient turns image files as their EXIF orientation says, where a source compares sizes of images with sizes
	// in annotations.
	Orient bool

	// Seen is called now and then with the number of samples looked at since the last call, while Open scans a
	// source. It may be nil.
	Seen func(n int64)

	// IsImage reports whether a file is an image, from its first bytes (at most 16). nil means to decide by names.
	IsImage func(head []byte) bool
}
