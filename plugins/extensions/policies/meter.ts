import type { ASTNode } from '@marcbachmann/cel-js'
import { extensionsLimits } from '../limits.ts'

// Limits the work of evaluating a condition. Counting steps would not be enough: a comparison may compare long texts,
// and an error within `||`, `&&` or a loop does not end the evaluation. Therefore, each node of the syntax tree spends
// from a budget before it runs.

/** Thrown when the budget is used up. The message is a clause. Created once, since a loop may throw it often. */
const budgetExhausted = new Error('the condition is too expensive to evaluate with these values')
let workLeft = 0
let lastError: unknown

/** Takes work from the budget of the current evaluation. @throws Error if the budget is used up */
export function spendWork (work: number): void {
  workLeft -= work
  if (workLeft < 0) throw budgetExhausted
}

/** Spends the work of creating an error. An error passes through all enclosing nodes, but is counted once. */
function spendOnError (error: unknown): void {
  if (error === budgetExhausted || error === lastError) return
  lastError = error
  spendWork(300)
}

/**
 * Runs an evaluation with a new work budget. Evaluations are synchronous, so one variable is enough.
 * @throws Error if the budget is used up; the errors of `evaluate`
 */
export function runMetered<T> (evaluate: () => T): T {
  workLeft = extensionsLimits.policies.work
  try {
    const value = evaluate()
    if (workLeft < 0) throw budgetExhausted
    return value
  } finally {
    lastError = undefined
  }
}

type Handle = (first: unknown, second: unknown, third: unknown, fourth: unknown) => unknown

/** A type-checked node, including the members for its evaluation, which the library's types omit. */
interface EvaluableNode extends Omit<ASTNode, 'args' | 'op'> {
  readonly op: string
  readonly args: unknown
  readonly meta: { readonly alternate?: unknown, readonly macro?: unknown, readonly evaluate: Handle }
  readonly setMeta: (name: 'evaluate', value: Handle) => void
  /** Evaluates the node with the values of its operands. */
  handle?: Handle
}

/** Makes each node of a type-checked tree spend work when it is evaluated. @param value a node or a list of nodes */
export function meterNodes (value: unknown, seen = new Set<unknown>()): void {
  if (typeof value !== 'object' || value === null || seen.has(value)) return
  seen.add(value)
  if (Array.isArray(value)) {
    for (const each of value) meterNodes(each, seen)
  } else if ('setMeta' in value) {
    const node = value as EvaluableNode
    if (!isLeaf(node)) meterNode(node)
    meterNodes([node.args, node.meta.alternate, node.meta.macro], seen)
  } else if (value.constructor === Object) {
    meterNodes(Object.values(value), seen)
  }
}

const isLeaf = ({ op }: EvaluableNode): boolean => op === 'value' || op === 'id'

function countLeaves (value: unknown): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, each) => sum + countLeaves(each), 0)
  return typeof value === 'object' && value !== null && 'setMeta' in value && isLeaf(value as EvaluableNode) ? 1 : 0
}

/** Makes a node spend work for itself and the leaves below it. */
function meterNode (node: EvaluableNode): void {
  const { evaluate } = node.meta
  const work = 1 + countLeaves(node.args)
  node.setMeta('evaluate', (evaluator, ast, context, none) => {
    spendWork(work)
    try {
      return evaluate(evaluator, ast, context, none)
    } catch (error) {
      spendOnError(error)
      throw error
    }
  })
  const { handle } = node
  const spendExtra = extraWorkOf(node)
  if (handle !== undefined && spendExtra !== undefined) {
    node.handle = (first, second, third, fourth) => {
      spendExtra(first, second)
      return handle(first, second, third, fourth)
    }
  }
  if (node.op === 'comprehension') endWhenExhausted(node.args as { condition?: (value: unknown) => boolean })
}

/** Makes a loop end when the budget is used up; otherwise, it would continue after the error. */
function endWhenExhausted (loop: { condition?: (value: unknown) => boolean }): void {
  const { condition } = loop
  if (condition !== undefined) loop.condition = (value) => workLeft >= 0 && condition(value)
}

/** The operators that compare values deeply. */
const comparisonOperators: ReadonlySet<string> = new Set(['==', '!=', 'in'])
/** The operators whose work grows with the lengths of their operands. */
const linearOperators: ReadonlySet<string> = new Set(['+', '<', '<=', '>', '>='])
/** The functions that search for one text in another. */
const searchFunctions: ReadonlySet<string> = new Set(['contains', 'indexOf', 'lastIndexOf'])

/** Returns a function that spends the work that depends on a node's operands; undefined if there is none. */
function extraWorkOf ({ op, args }: EvaluableNode): ((first: unknown, second: unknown) => void) | undefined {
  if (comparisonOperators.has(op)) {
    return (left, right) => {
      spendOnAll(left)
      if (op !== 'in' || !(right instanceof Map)) spendOnAll(right)
    }
  }
  if (linearOperators.has(op)) return (left, right) => { spendWork((sizeOf(left) + sizeOf(right)) * 10) }
  if (op === 'comprehension') return (items) => { spendWork(Array.isArray(items) ? 0 : sizeOf(items)) }
  if (op !== 'call' && op !== 'rcall') return undefined
  const [name] = args as [string]
  return (operands) => { spendOnCall(name, operands as unknown[]) }
}

function spendOnCall (name: string, operands: readonly unknown[]): void {
  spendWork(10)
  const [first, second] = operands
  if (searchFunctions.has(name)) return spendWork(lengthOf(first) * (2 + lengthOf(second)) / 200)
  if (name === 'startsWith' || name === 'endsWith') return spendWork(sizeOf(second))
  for (const each of operands) spendWork(sizeOf(each) * 10)
  if (name === 'join') spendOnAll(first)
  // The library parses a duration in time proportional to the cube of the length.
  if (name === 'duration') spendWork(lengthOf(first) ** 3 / 1_000)
  // A time zone, the second operand, is looked up at each evaluation.
  if (name.startsWith('get') && second !== undefined) spendWork(2_000)
}

const lengthOf = (value: unknown): number => typeof value === 'string' ? value.length : 0

/** Returns the work of iterating over a value, without the work for nested values. */
function sizeOf (value: unknown): number {
  if (typeof value === 'string') return value.length / 100
  if (Array.isArray(value)) return value.length / 10
  if (value instanceof Uint8Array) return value.length / 10
  return value instanceof Map ? value.size / 10 : 0
}

/** Spends the work of iterating over a value and all nested values. */
function spendOnAll (value: unknown): void {
  spendWork(1 + sizeOf(value))
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value) || value instanceof Map) for (const each of value.values()) spendOnAll(each)
  else if (value.constructor === Object) for (const each of Object.values(value)) spendOnAll(each)
}
