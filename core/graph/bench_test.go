package graph_test

import (
	"fmt"
	"testing"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/store/memory"
)

func BenchmarkInvoke(b *testing.B) {
	for _, nodes := range []int{1, 100} {
		d := chainOf(nodes)
		b.Run(fmt.Sprintf("nodes=%d/nothing kept", nodes), func(b *testing.B) {
			benchmark(b, compile(b, d, graph.Options{}), graph.Request{})
		})
		b.Run(fmt.Sprintf("nodes=%d/kept in memory", nodes), func(b *testing.B) {
			benchmark(b, compile(b, d, keeping(memory.New())), graph.Request{})
		})
	}
}

func chainOf(n int) graph.Definition {
	var nodes []graph.Node
	for i := range n {
		nodes = append(nodes, says(fmt.Sprint(i)))
	}
	return chain(nodes...)
}

func benchmark(b *testing.B, c *graph.Compiled, req graph.Request) {
	b.ReportAllocs()
	for b.Loop() {
		if out, err := c.Invoke(b.Context(), req); err != nil || out.Status != graph.Completed {
			b.Fatal(out.Status, err)
		}
	}
}

func BenchmarkSuspendAndResume(b *testing.B) {
	c := onMemory(b, chain(waits("gate", "go"), says("after")))
	signal := payload(`{"count": 1}`)
	b.ReportAllocs()
	for b.Loop() {
		out, err := c.Invoke(b.Context(), graph.Request{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err = c.Invoke(b.Context(), graph.Request{Resume: out.InvocationID, Payload: signal}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendToAList(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			l := graph.ListOf(make([]string, n)...)
			b.ReportAllocs()
			for b.Loop() {
				_ = l.Append("x")
			}
		})
	}
}
