package array

// blockCursor returns single values of one size from a reader of blocks.
type blockCursor struct {
	blockReader
	rest []byte // values that were read and not returned yet
	size int    // bytes of a value
}

// blockReader reads values of one size, many at a time.
type blockReader interface {
	// read returns one or more of the next values and the size of each in bytes; io.EOF after the last. The memory
	// of a block is not reused, as its values outlive the next read.
	read() (block []byte, size int, err error)
	Close() error
}

func (c *blockCursor) Next() (value []byte, err error) {
	if len(c.rest) == 0 {
		if c.rest, c.size, err = c.read(); err != nil {
			return nil, err
		}
	}
	value, c.rest = c.rest[:c.size:c.size], c.rest[c.size:]
	return value, nil
}
