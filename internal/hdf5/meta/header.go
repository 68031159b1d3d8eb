package meta

import "time"

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
	typ   uint16
	flags uint8
	at    int64 // offset of data in the file
	data  []byte
}

// header is an object header with the messages of all its blocks in order.
type header struct {
	addr    uint64
	version int
	size    int64 // bytes of all blocks
	msgs    []message

	parts    []span // continuation blocks still to be read
	nparts   int
	hasOrder bool // version 2: messages carry a creation order
	links    uint32
	modified uint32
}

type span struct{ addr, n uint64 }

// readHeader reads the object header at addr, all continuation blocks included.
func (s *source) readHeader(addr uint64) (*header, error) {
	h := &header{addr: addr}
	c := s.readUpTo(addr, headerPrefixMax, "object header")
	if c.left() >= 4 && string(c.b[:4]) == "OHDR" {
		h.readV2(s, c)
	} else {
		h.readV1(s, c)
	}
	for c.err == nil && len(h.parts) > 0 {
		part := h.parts[0]
		h.parts = h.parts[1:]
		c = h.readPart(s, part)
	}
	return h, c.err
}

// readV1 reads version 1: a prefix of 16 bytes, then messages.
func (h *header) readV1(s *source, c *cursor) {
	if c.left() > 0 && c.b[0] == 0 {
		c.corrupt("there is none, as in a file whose writer ended without closing it")
	}
	h.version = int(c.version(1, 1))
	c.skip(1 + 2) // reserved, number of messages
	h.links = c.u32()
	n := uint64(c.u32())
	c.skip(4)
	if c.err != nil {
		return
	}
	body := s.read(h.addr+16, n, "object header")
	s.note(h.addr, 16+n, "object header")
	h.messages(body, body.left(), int64(16+n))
	c.err = body.err
}

// readV2 reads version 2: "OHDR", optional fields by flags, messages, checksum.
func (h *header) readV2(s *source, c *cursor) {
	c.signature("OHDR")
	h.version = int(c.version(2, 2))
	flags := c.u8()
	h.hasOrder = flags&0x04 != 0
	if flags&0x20 != 0 {
		c.skip(4) // when it was read
		h.modified = c.u32()
		c.skip(8) // when the header was changed, and made
	}
	if flags&0x10 != 0 {
		c.skip(4) // attribute phase change values
	}
	n := c.uint(1 << (flags & 3))
	if c.err != nil {
		return
	}
	if n > maxHeaderBytes {
		c.corrupt("block of %d bytes", n)
		return
	}
	prefix := c.pos
	*c = *s.read(h.addr, uint64(prefix)+n+4, "object header")
	s.note(h.addr, uint64(prefix)+n+4, "object header")
	h.checked(c, prefix)
}

// readPart reads a continuation block.
func (h *header) readPart(s *source, part span) *cursor {
	c := s.read(part.addr, part.n, "object header continuation")
	s.note(part.addr, part.n, "object header continuation")
	if h.version == 1 {
		h.messages(c, c.left(), int64(part.n))
		return c
	}
	c.signature("OCHK")
	if c.err == nil && part.n < 8 {
		c.corrupt("block of %d bytes", part.n)
	}
	if c.err == nil {
		h.checked(c, 4)
	}
	return c
}

// checked verifies the checksum at the end of a version 2 block, then reads its messages.
func (h *header) checked(c *cursor, prefix int) {
	if c.err != nil {
		return
	}
	end := len(c.b) - 4
	c.pos = end
	c.checksum()
	if c.err != nil {
		return
	}
	c.pos = prefix
	h.messages(c, end, int64(len(c.b)))
}

// messages splits c up to end into messages; a rest too small for one is a gap.
func (h *header) messages(c *cursor, end int, size int64) {
	head := 8
	if h.version == 2 {
		head = 4
		if h.hasOrder {
			head = 6
		}
	}
	h.size += size
	if h.nparts++; c.err == nil && (h.nparts > maxHeaderParts || h.size > maxHeaderBytes) {
		c.unsupported("more than %d blocks or %d bytes", maxHeaderParts, maxHeaderBytes)
	}
	for c.err == nil && end-c.pos >= head {
		m := h.nextMessage(c, end)
		if c.err == nil && m.typ == msgContinuation {
			h.continuation(c, m)
		} else if m.typ != msgNil {
			h.msgs = append(h.msgs, m)
		}
	}
}

func (h *header) nextMessage(c *cursor, end int) (m message) {
	var n uint16
	if h.version == 1 {
		m.typ, n, m.flags = c.u16(), c.u16(), c.u8()
		c.skip(3)
	} else {
		m.typ, n, m.flags = uint16(c.u8()), c.u16(), c.u8()
		if h.hasOrder {
			c.skip(2)
		}
	}
	if c.err == nil && int(n) > end-c.pos {
		c.corrupt("message of type 0x%x has %d bytes, but only %d are left in its block", m.typ, n, end-c.pos)
	}
	m.at = c.at + int64(c.pos)
	m.data = c.bytes(uint64(n))
	return m
}

// continuation queues the block that a continuation message names. Each block is charged
// to the budget, and their number is limited, so a cycle ends in an error.
func (h *header) continuation(c *cursor, m message) {
	mc := c.src.cursor(m, "object header continuation message")
	part := span{mc.addr(), mc.length()}
	if mc.err != nil {
		c.err = mc.err
		return
	}
	h.parts = append(h.parts, part)
}

// cursor returns a cursor over the message's body.
func (s *source) cursor(m message, what string) *cursor {
	return &cursor{src: s, b: m.data, at: m.at, what: what}
}

// modifiedAt returns when the object was last changed, zero if that is not stored: version 1 has
// a message for it, with a version, 3 bytes and the seconds.
func (h *header) modifiedAt(s *source) time.Time {
	if m, ok := h.first(msgModified); ok {
		c := s.cursor(m, "modification time message")
		c.version(1, 1)
		c.skip(3)
		h.modified = c.u32()
	}
	if h.modified == 0 {
		return time.Time{}
	}
	return time.Unix(int64(h.modified), 0).UTC()
}

// linkCount returns how many links there are to the object, as stored: in version 2 by a message, of
// a version and the number, where there are several.
func (h *header) linkCount(s *source) int {
	if m, ok := h.first(msgLinks); ok {
		c := s.cursor(m, "reference count message")
		c.version(0, 0)
		h.links = c.u32()
	} else if h.version == 2 {
		h.links = 1
	}
	return int(h.links)
}

// first returns the first message of that type.
func (h *header) first(typ uint16) (message, bool) {
	for _, m := range h.msgs {
		if m.typ == typ {
			return m, true
		}
	}
	return message{}, false
}

// unknown returns an error if the header holds a message that a reader must understand
// and this one does not.
func (h *header) unknown(s *source) error {
	for _, m := range h.msgs {
		if (m.typ > msgLast || m.typ == msgBogus) && m.flags&flagMustKnow != 0 {
			return s.errorAt(ErrUnsupported, h.addr, "object header", "message of unknown type 0x%x, which readers must understand", m.typ)
		}
	}
	return nil
}
