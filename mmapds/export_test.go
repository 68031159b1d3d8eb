package mmapds

// WithMemory opens a dataset as a process does that may have that many bytes of memory.
func WithMemory(bytes int64) Option { return func(c *config) { c.memory = bytes } }

// WithMostMapped maps the files of a dataset only if there are at most that many.
func WithMostMapped(files int) Option { return func(c *config) { c.mostMapped = files } }

// ReadMode is how Gather comes to records.
type ReadMode = readMode

// The ways to read.
const (
	ReadAuto   = modeAuto
	ReadMapped = modeMapped
	ReadPread  = modePread
	ReadDirect = modeDirect
)

// WithRead has Gather come to records in one way only.
func WithRead(mode ReadMode) Option { return func(c *config) { c.read = mode } }
