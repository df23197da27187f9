package graph

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// NodeFunc does one node's work: it reads the state and returns changes to it, or suspends by returning Suspend(…) as
// its error, in which case the changes are ignored. It must not change what it reads.
type NodeFunc func(ctx context.Context, s State) (Update, error)

// Node is a named unit of work.
type Node struct {
	Name string
	Run  NodeFunc
}

// Target is where an edge leads: a node, or END.
type Target struct {
	node string
	end  bool
}

// END halts the graph. It is no node name: a node may be called "END".
var END = Target{end: true}

// To leads to the named node.
func To(node string) Target { return Target{node: node} }

func (t Target) String() string {
	if t.end {
		return "END"
	}
	return t.node
}

// Edge leads from a node to one place, or to the place that Choose finds by the state after the node's update. Every
// node has exactly one edge.
type Edge struct {
	From   string
	To     Target
	Choose func(ctx context.Context, s State) (Target, error)
}

// Definition describes a graph. It is data; Compile checks it.
type Definition struct {
	Fields []Field
	// Version is the schema version of sessions that this graph writes (sessions §7).
	Version string
	Entry   string
	Nodes   []Node
	Edges   []Edge
}

// Options are what a graph runs with. The zero value keeps nothing and observes nothing.
type Options struct {
	// Sessions holds state across invocations. Nil: a session id only names.
	Sessions SessionStore
	// SessionFields are the fields a session keeps (sessions §4.2). Nil: all of them (§4.1).
	SessionFields []Field
	// NoAutoSave leaves saving the session at END to Save (sessions §6.3).
	NoAutoSave bool
	// Checkpoints keeps the record of each invocation, after each node. Nil: a suspension cannot be kept and is an error.
	Checkpoints Checkpointer
	// Observers see the events of every invocation.
	Observers []Observer
	// NewID makes invocation ids; UUIDv4 by default.
	NewID func() string
	// Now is the clock; time.Now by default.
	Now func() time.Time
	// Logger hears of panicking observers; nothing by default.
	Logger *slog.Logger
}

// Compiled is an immutable, executable graph. Its methods may be called concurrently.
type Compiled struct {
	schema  *schema
	entry   string
	nodes   map[string]NodeFunc
	edges   map[string]Edge
	session []bool // per field: kept by sessions
	opts    Options
	workers workers
}

// Compile checks a definition (graph-engine §2). Its error is an *Error with one of the compile categories.
func Compile(d Definition, o Options) (*Compiled, error) {
	c := &Compiled{entry: d.Entry, nodes: make(map[string]NodeFunc), edges: make(map[string]Edge), opts: o}
	if c.opts.NewID == nil {
		c.opts.NewID = NewID
	}
	if c.opts.Now == nil {
		c.opts.Now = time.Now
	}
	if c.opts.Logger == nil {
		c.opts.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if c.schema, err = compileSchema(d); err != nil {
		return nil, err
	}
	if err := c.compileSession(); err != nil {
		return nil, err
	}
	if err := c.compileNodes(d); err != nil {
		return nil, err
	}
	if err := c.compileEdges(d); err != nil {
		return nil, err
	}
	return c, c.checkReachable(d)
}

func compileSchema(d Definition) (*schema, error) {
	s := &schema{version: d.Version, index: make(map[string]int)}
	for _, f := range d.Fields {
		def := f.definition()
		if _, twice := s.index[def.name]; twice {
			return nil, &Error{Category: ConflictingReducers, Field: def.name, Message: fmt.Sprintf("field %q is declared twice", def.name)}
		}
		s.index[def.name] = len(s.fields)
		s.fields = append(s.fields, def)
	}
	return s, nil
}

func (c *Compiled) compileSession() error {
	c.session = make([]bool, len(c.schema.fields))
	for i := range c.session {
		c.session[i] = c.opts.SessionFields == nil
	}
	for _, f := range c.opts.SessionFields {
		i, ok := c.schema.index[f.Name()]
		if !ok {
			return &Error{Category: MappingUndeclaredField, Field: f.Name(), Message: fmt.Sprintf("session field %q is not declared", f.Name())}
		}
		c.session[i] = true
	}
	return nil
}

func (c *Compiled) compileNodes(d Definition) error {
	for _, n := range d.Nodes {
		if _, twice := c.nodes[n.Name]; twice {
			return &Error{Category: DuplicateNode, Node: n.Name, Message: "two nodes have this name"}
		}
		c.nodes[n.Name] = n.Run
	}
	if d.Entry == "" {
		return &Error{Category: NoDeclaredEntry, Message: "the definition names no entry node"}
	}
	if _, ok := c.nodes[d.Entry]; !ok {
		return &Error{Category: DanglingEdge, Node: d.Entry, Message: "the entry is not a declared node"}
	}
	return nil
}

func (c *Compiled) compileEdges(d Definition) error {
	for _, e := range d.Edges {
		if _, ok := c.nodes[e.From]; !ok {
			return &Error{Category: DanglingEdge, Node: e.From, Message: "an edge leaves a node that is not declared"}
		}
		if _, twice := c.edges[e.From]; twice {
			return &Error{Category: MultipleOutgoingEdges, Node: e.From, Message: "a node has exactly one edge; branch with Choose"}
		}
		if e.Choose == nil && !e.To.end {
			if _, ok := c.nodes[e.To.node]; !ok {
				return &Error{Category: DanglingEdge, Node: e.To.node, Message: fmt.Sprintf("the edge from %q leads to a node that is not declared", e.From)}
			}
		}
		c.edges[e.From] = e
	}
	for _, n := range d.Nodes {
		if _, ok := c.edges[n.Name]; !ok {
			return &Error{Category: NoOutgoingEdge, Node: n.Name, Message: "a node without an edge leads nowhere; lead it to END"}
		}
	}
	return nil
}

// checkReachable walks the static edges. A conditional edge may lead anywhere, so with one on the way everything counts
// as reachable.
func (c *Compiled) checkReachable(d Definition) error {
	seen := map[string]bool{}
	for at := c.entry; !seen[at]; {
		seen[at] = true
		e := c.edges[at]
		if e.Choose != nil {
			return nil
		}
		if e.To.end {
			break
		}
		at = e.To.node
	}
	for _, n := range d.Nodes {
		if !seen[n.Name] {
			return &Error{Category: UnreachableNode, Node: n.Name, Message: "no path leads here from the entry"}
		}
	}
	return nil
}
