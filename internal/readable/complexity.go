package main

import (
	"go/ast"
	"go/token"
)

// complexityOf returns the cognitive complexity of a function. Each branch and loop counts one, and
// one more for each that it is nested in. Each else, each jump to a label, each sequence of equal
// logical operators and each call of the function itself counts one.
func complexityOf(f *ast.FuncDecl) int {
	c := &complexity{function: f.Name.Name, isMethod: f.Recv != nil}
	c.visit(f.Body, 0)
	return c.total
}

type complexity struct {
	function string
	isMethod bool
	total    int
}

// visit adds a node with its children, at a depth of nesting.
func (c *complexity) visit(node ast.Node, depth int) {
	if node == nil {
		return
	}
	ast.Inspect(node, func(child ast.Node) bool {
		switch child := child.(type) {
		case *ast.IfStmt:
			c.total += 1 + depth
			c.visitIf(child, depth)
			return false
		case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			c.total += 1 + depth
			c.visitNested(child, depth+1)
			return false
		case *ast.FuncLit:
			c.visit(child.Body, depth+1)
			return false
		case *ast.BranchStmt:
			if child.Label != nil {
				c.total++
			}
		case *ast.BinaryExpr:
			if isLogical(child.Op) {
				c.addOperators(child, depth)
				return false
			}
		case *ast.CallExpr:
			called, ok := child.Fun.(*ast.Ident)
			if ok && !c.isMethod && called.Name == c.function {
				c.total++
			}
		}
		return true
	})
}

// visitIf adds the parts of an if statement that has been counted.
func (c *complexity) visitIf(s *ast.IfStmt, depth int) {
	if s.Init != nil {
		c.visit(s.Init, depth)
	}
	c.visit(s.Cond, depth)
	c.visit(s.Body, depth+1)
	if s.Else == nil {
		return
	}
	c.total++
	if next, ok := s.Else.(*ast.IfStmt); ok {
		c.visitIf(next, depth)
		return
	}
	c.visit(s.Else, depth+1)
}

// visitNested adds the parts of a statement that has been counted.
func (c *complexity) visitNested(s ast.Node, depth int) {
	ast.Inspect(s, func(child ast.Node) bool {
		if child == nil || child == s {
			return true
		}
		c.visit(child, depth)
		return false
	})
}

func isLogical(operator token.Token) bool { return operator == token.LAND || operator == token.LOR }

// addOperators counts the sequences of equal operators in an expression.
func (c *complexity) addOperators(expression *ast.BinaryExpr, depth int) {
	var last token.Token
	var add func(operand ast.Expr)
	add = func(operand ast.Expr) {
		binary, ok := ast.Unparen(operand).(*ast.BinaryExpr)
		if !ok || !isLogical(binary.Op) {
			c.visit(operand, depth)
			return
		}
		add(binary.X)
		if binary.Op != last {
			c.total++
			last = binary.Op
		}
		add(binary.Y)
	}
	add(expression)
}
