package memory

import "bytes"

// node is the root of an immutable treap: a search tree by key that is at the same time a heap by rank. As ranks are
// hashes of the keys, the tree is as deep as a random one, about 2·ln n, in whatever order the keys came. The empty
// tree is nil. A change copies the nodes on the path to it and shares the rest with the tree it came from.
type node struct {
	key, value  []byte
	rank        uint64
	left, right *node
}

// get returns the value at key, or nil.
func (n *node) get(key []byte) []byte {
	for n != nil {
		switch c := bytes.Compare(key, n.key); {
		case c < 0:
			n = n.left
		case c > 0:
			n = n.right
		default:
			return n.value
		}
	}
	return nil
}

// put returns the tree with the entry of leaf in it; leaf has no children and becomes part of the new tree.
func (n *node) put(leaf *node) *node {
	if n == nil {
		return leaf
	}
	if leaf.rank > n.rank { // a key that is in this tree already would have a rank of n.rank at most
		leaf.left, leaf.right = n.split(leaf.key)
		return leaf
	}
	switch c := bytes.Compare(leaf.key, n.key); {
	case c < 0:
		return n.with(n.left.put(leaf), n.right)
	case c > 0:
		return n.with(n.left, n.right.put(leaf))
	default:
		leaf.left, leaf.right = n.left, n.right
		return leaf
	}
}

// without returns the tree without key; it is n itself if key is not there.
func (n *node) without(key []byte) *node {
	if n == nil {
		return nil
	}
	switch c := bytes.Compare(key, n.key); {
	case c < 0:
		if left := n.left.without(key); left != n.left {
			return n.with(left, n.right)
		}
		return n
	case c > 0:
		if right := n.right.without(key); right != n.right {
			return n.with(n.left, right)
		}
		return n
	default:
		return merge(n.left, n.right)
	}
}

// split parts the tree at key, which is not in it.
func (n *node) split(key []byte) (less, more *node) {
	if n == nil {
		return nil, nil
	}
	if bytes.Compare(n.key, key) < 0 {
		less, more = n.right.split(key)
		return n.with(n.left, less), more
	}
	less, more = n.left.split(key)
	return less, n.with(more, n.right)
}

// merge joins two trees of which every key of less is below every key of more.
func merge(less, more *node) *node {
	if less == nil {
		return more
	}
	if more == nil {
		return less
	}
	if less.rank > more.rank {
		return less.with(less.left, merge(less.right, more))
	}
	return more.with(merge(less, more.left), more.right)
}

// with returns a copy of the node with other children.
func (n *node) with(left, right *node) *node {
	return &node{key: n.key, value: n.value, rank: n.rank, left: left, right: right}
}

// ascend calls fn for the entries in [from, to) in order; a nil to is the end. It reports whether fn wants more.
func (n *node) ascend(from, to []byte, fn func(key, value []byte) bool) bool {
	if n == nil {
		return true
	}
	if n.below(from) {
		return n.right.ascend(from, to, fn)
	}
	if n.atOrAbove(to) {
		return n.left.ascend(from, to, fn)
	}
	return n.left.ascend(from, to, fn) && fn(n.key, n.value) && n.right.ascend(from, to, fn)
}

// descend is ascend in reverse order.
func (n *node) descend(from, to []byte, fn func(key, value []byte) bool) bool {
	if n == nil {
		return true
	}
	if n.below(from) {
		return n.right.descend(from, to, fn)
	}
	if n.atOrAbove(to) {
		return n.left.descend(from, to, fn)
	}
	return n.right.descend(from, to, fn) && fn(n.key, n.value) && n.left.descend(from, to, fn)
}

func (n *node) below(from []byte) bool { return bytes.Compare(n.key, from) < 0 }

func (n *node) atOrAbove(to []byte) bool { return to != nil && bytes.Compare(n.key, to) >= 0 }
