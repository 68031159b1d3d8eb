package mmapds

// WithMemory opens a dataset as a process does that may have that many bytes of memory.
func WithMemory(bytes int64) Option { return func(c *config) { c.memory = bytes } }
