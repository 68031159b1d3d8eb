package meta

import (
	"time"
)

// Message types of object headers that are read here.
const (
	msgNil          = 0x00
	msgDataspace    = 0x01
	msgLinkInfo     = 0x02
	msgDatatype     = 0x03
	msgFillOld      = 0x04
	msgFill         = 0x05
	msgLink         = 0x06
	msgExternal     = 0x07
	msgLayout       = 0x08
	msgBogus        = 0x09 // has no meaning: for tests of readers
	msgFilters      = 0x0b
	msgAttribute    = 0x0c
	msgSharedTable  = 0x0f
	msgContinuation = 0x10
	msgSymbolTable  = 0x11
	msgModified     = 0x12
	msgBTreeK       = 0x13
	msgAttrInfo     = 0x15
	msgLinks        = 0x16
	msgCacheImage   = 0x18
	msgLast         = 0x18
)

// Flags of a header message.
const (
	flagShared      = 0x02
	flagMustKnow    = 0x80
	maxHeaderParts  = 1 << 14 // continuation blocks of one header
	maxHeaderBytes  = 64 << 20
	headerPrefixMax = 4 + 1 + 1 + 16 + 4 + 8
)

// message is one message of an object header, its body not yet parsed.
type message struct {
	Typ   uint16
	Flags uint8
	At    int64 // offset of data in the file
	Data  []byte
}

// header is an object header with the messages of all its blocks in order.
type header struct {
	Addr    uint64
	Version int
	Size    int64 // bytes of all blocks
	Msgs    []message

	parts    []span // continuation blocks still to be read
	nparts   int
	hasOrder bool // version 2: messages carry a creation order
	links    uint32
	modified uint32
}

// span is a piece of the file by its address.
type span struct{ addr, n uint64 }

// readHeader reads the object header at addr, all continuation blocks included.
func readHeader(s *source, addr uint64) (*header, error) {
	h := &header{Addr: addr}
	c := s.ReadUpTo(addr, headerPrefixMax, "object header")
	if c.Left() >= 4 && string(c.B[:4]) == "OHDR" {
		h.readV2(s, c)
	} else {
		h.readV1(s, c)
	}
	for c.Err == nil && len(h.parts) > 0 {
		part := h.parts[0]
		h.parts = h.parts[1:]
		c = h.readPart(s, part)
	}
	return h, c.Err
}

// readV1 reads a header of version 1: a prefix of 16 bytes, then messages.
func (h *header) readV1(s *source, c *cursor) {
	if c.Left() > 0 && c.B[0] == 0 {
		c.Corrupt("there is none, as in a file whose writer ended without closing it")
	}
	h.Version = int(c.Version(1, 1))
	c.Skip(1 + 2) // reserved, number of messages
	h.links = c.U32()
	n := uint64(c.U32())
	c.Skip(4)
	if c.Err != nil {
		return
	}
	body := s.Read(h.Addr+16, n, "object header")
	s.Note(h.Addr, 16+n, "object header")
	h.messages(body, body.Left(), int64(16+n))
	c.Err = body.Err
}

// readV2 reads a header of version 2: "OHDR", optional fields by flags, messages, checksum.
func (h *header) readV2(s *source, c *cursor) {
	c.Signature("OHDR")
	h.Version = int(c.Version(2, 2))
	flags := c.U8()
	h.hasOrder = flags&0x04 != 0
	if flags&0x20 != 0 {
		c.Skip(4) // when it was read
		h.modified = c.U32()
		c.Skip(8) // when the header was changed, and made
	}
	if flags&0x10 != 0 {
		c.Skip(4) // attribute phase change values
	}
	n := c.Uint(1 << (flags & 3))
	if c.Err != nil {
		return
	}
	if n > maxHeaderBytes {
		c.Corrupt("block of %d bytes", n)
		return
	}
	prefix := c.Pos
	*c = *s.Read(h.Addr, uint64(prefix)+n+4, "object header")
	s.Note(h.Addr, uint64(prefix)+n+4, "object header")
	h.checked(c, prefix)
}

// readPart reads a continuation block.
func (h *header) readPart(s *source, part span) *cursor {
	c := s.Read(part.addr, part.n, "object header continuation")
	s.Note(part.addr, part.n, "object header continuation")
	if h.Version == 1 {
		h.messages(c, c.Left(), int64(part.n))
		return c
	}
	c.Signature("OCHK")
	if c.Err == nil && part.n < 8 {
		c.Corrupt("block of %d bytes", part.n)
	}
	if c.Err == nil {
		h.checked(c, 4)
	}
	return c
}

// checked verifies the checksum at the end of a version 2 block, then reads its messages.
func (h *header) checked(c *cursor, prefix int) {
	if c.Err != nil {
		return
	}
	end := len(c.B) - 4
	c.Pos = end
	c.Checksum()
	if c.Err != nil {
		return
	}
	c.Pos = prefix
	h.messages(c, end, int64(len(c.B)))
}

// messages splits c, up to end, into messages. A rest that is too small for a message is a gap.
func (h *header) messages(c *cursor, end int, size int64) {
	head := 8
	if h.Version == 2 {
		head = 4
		if h.hasOrder {
			head = 6
		}
	}
	h.Size += size
	if h.nparts++; c.Err == nil && (h.nparts > maxHeaderParts || h.Size > maxHeaderBytes) {
		c.Unsupported("more than %d blocks or %d bytes", maxHeaderParts, maxHeaderBytes)
	}
	for c.Err == nil && end-c.Pos >= head {
		m := h.nextMessage(c, end)
		if c.Err == nil && m.Typ == msgContinuation {
			h.continuation(c, m)
		} else if m.Typ != msgNil {
			h.Msgs = append(h.Msgs, m)
		}
	}
}

// nextMessage reads one message of an object header. Version 1 has 8 bytes before the data, and version 2 has 4, or 6
// where the header tracks the order of creation (IV.A.1). A message never continues in the next block, so one that is
// longer than its block is corrupt.
func (h *header) nextMessage(c *cursor, end int) (m message) {
	var n uint16
	if h.Version == 1 {
		m.Typ, n, m.Flags = c.U16(), c.U16(), c.U8()
		c.Skip(3)
	} else {
		m.Typ, n, m.Flags = uint16(c.U8()), c.U16(), c.U8()
		if h.hasOrder {
			c.Skip(2)
		}
	}
	if c.Err == nil && int(n) > end-c.Pos {
		c.Corrupt("message of type 0x%x has %d bytes, but only %d are left in its block", m.Typ, n, end-c.Pos)
	}
	m.At = c.At + int64(c.Pos)
	m.Data = c.Bytes(uint64(n))
	return m
}

// continuation queues the block that a continuation message names. Each block is charged
// to the budget, and their number is limited, so a cycle ends in an error.
func (h *header) continuation(c *cursor, m message) {
	mc := m.Cursor(c.Src, "object header continuation message")
	part := span{mc.Addr(), mc.Length()}
	if mc.Err != nil {
		c.Err = mc.Err
		return
	}
	h.parts = append(h.parts, part)
}

// Cursor returns a cursor over the message's body.
func (m message) Cursor(s *source, what string) *cursor {
	return &cursor{Src: s, B: m.Data, At: m.At, What: what}
}

// ModifiedAt returns when the object was last changed, zero if that is not stored. Version 1 stores it in a message: a
// version, 3 bytes and the seconds.
func (h *header) ModifiedAt(s *source) time.Time {
	if m, ok := h.First(msgModified); ok {
		c := m.Cursor(s, "modification time message")
		c.Version(1, 1)
		c.Skip(3)
		h.modified = c.U32()
	}
	if h.modified == 0 {
		return time.Time{}
	}
	return time.Unix(int64(h.modified), 0).UTC()
}

// LinkCount returns how many links lead to the object, as stored. Version 2 stores the number in a message, if there
// are several links.
func (h *header) LinkCount(s *source) int {
	if m, ok := h.First(msgLinks); ok {
		c := m.Cursor(s, "reference count message")
		c.Version(0, 0)
		h.links = c.U32()
	} else if h.Version == 2 {
		h.links = 1
	}
	return int(h.links)
}

// First returns the first message of that type.
func (h *header) First(typ uint16) (message, bool) {
	for _, m := range h.Msgs {
		if m.Typ == typ {
			return m, true
		}
	}
	return message{}, false
}

// Unknown returns an error if the header has a message that a reader must understand and that this package does not
// know. Ignoring such a message could give wrong values.
func (h *header) Unknown(s *source) error {
	for _, m := range h.Msgs {
		if (m.Typ > msgLast || m.Typ == msgBogus) && m.Flags&flagMustKnow != 0 {
			return s.ErrorAt(ErrUnsupported, h.Addr, "object header",
				"message of unknown type 0x%x, which readers must understand", m.Typ)
		}
	}
	return nil
}
