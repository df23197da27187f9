package store

import (
	"encoding/binary"
)

// A key is a kind followed by parts, encoded so that byte order is the order of the parts and no part can run into the
// next, whatever bytes it has: zero bytes are written as 00 FF and every part ends with 00 01.

// kind is the first byte of a key: which record it is.
type kind byte

const (
	kindSession    kind = 's' // session id
	kindSessionLog kind = 'l' // session id, field, index
	kindInvocation kind = 'i' // invocation id
	kindSignal     kind = 'g' // signal id
)

func (k kind) key(parts ...string) []byte {
	key := []byte{byte(k)}
	for _, p := range parts {
		key = appendPart(key, p)
	}
	return key
}

func appendPart(key []byte, part string) []byte {
	for i := range len(part) {
		key = append(key, part[i])
		if part[i] == 0 {
			key = append(key, 0xff)
		}
	}
	return append(key, 0, 1)
}

// appendIndex ends a key with a number, in the numbers' order.
func appendIndex(key []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(key, n) }

// prefixEnd returns the first key after all that begin with prefix.
func prefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] != 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

// scan calls fn for every key that begins with prefix, with the rest of the key.
func scan(tx Tx, prefix []byte, fn func(rest, value []byte) bool) error {
	return tx.Scan(prefix, prefixEnd(prefix), false, func(k, v []byte) bool { return fn(k[len(prefix):], v) })
}

// parts takes apart what appendPart put together; damaged keys give what could be read.
func parts(key []byte) []string {
	var out []string
	var part []byte
	for i := 0; i < len(key); i++ {
		if key[i] != 0 {
			part = append(part, key[i])
			continue
		}
		i++
		if i < len(key) && key[i] == 0xff {
			part = append(part, 0)
			continue
		}
		out, part = append(out, string(part)), nil
	}
	return out
}
