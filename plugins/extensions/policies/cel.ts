import type { ASTNode, Environment, EvaluationError, ParseError, TypeError as CelTypeError } from '@marcbachmann/cel-js'
import type { RE2JS } from 're2js'
import { loadPackage } from '../../../package.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import { extensionsLimits } from '../limits.ts'
import { meterNodes, runMetered, spendWork } from './meter.ts'

// Facts are instances of classes, which the CEL library reads directly. It would copy plain objects at each evaluation.

/** The bearer key of the caller, as conditions see it. The members are '' if the caller uses no bearer key. */
export class KeyFacts {
  readonly id: string
  readonly name: string

  constructor (id: string, name: string) {
    this.id = id
    this.name = name
  }
}

/** The caller, as conditions see it. Unknown texts are ''. */
export class PrincipalFacts {
  readonly username: string
  readonly isAdmin: boolean
  readonly teams: readonly string[]
  readonly key: KeyFacts
  readonly address: string
  /** The id of the OAuth client that calls, for a caller with an access token. */
  readonly client: string

  constructor (facts: Readonly<PrincipalFacts>) {
    this.username = facts.username
    this.isAdmin = facts.isAdmin
    this.teams = facts.teams
    this.key = facts.key
    this.address = facts.address
    this.client = facts.client
  }
}

/** The requested item, as conditions see it. */
export class ItemFacts {
  readonly server: string
  readonly name: string
  readonly kind: 'tool' | 'prompt' | 'resource'
  readonly annotations: Readonly<Record<string, unknown>>
  readonly tags: readonly string[]

  constructor (facts: Readonly<ItemFacts>) {
    this.server = facts.server
    this.name = facts.name
    this.kind = facts.kind
    this.annotations = facts.annotations
    this.tags = facts.tags
  }
}

/** The values of the variables of a condition. */
export interface PolicyContext {
  readonly principal: PrincipalFacts
  /** The requested item, which may also be a prompt or a resource. */
  readonly tool: ItemFacts
  /** The path of the MCP endpoint that is called. */
  readonly route: string
  readonly args: Readonly<Record<string, unknown>>
  readonly now: Date
}

/** A compiled condition. */
export interface Condition {
  /** The names of the variables that the condition uses. */
  readonly variables: ReadonlySet<string>
  /** The names of the members of `principal` that the condition uses; undefined if it may use any. */
  readonly principalMembers: ReadonlySet<string> | undefined
  /** Evaluates the condition. @throws Error with a clause that says why it cannot be evaluated */
  readonly isTrue: (context: PolicyContext) => boolean
}

/** Thrown when a condition cannot be compiled. `position`: the index of the problem in the text of the condition. */
export class InvalidCondition extends Error {
  override readonly name = 'InvalidCondition'
  readonly position: number

  constructor (message: string, position: number) {
    super(message)
    this.position = position
  }
}

/** The name of the function that replaces CEL's `matches`, whose patterns could take exponential time. */
const linearMatches = 'matchesInLinearTime'
const patterns = new BoundedMap<string, RE2JS>(extensionsLimits.policies.patterns)

/** Returns a compiled pattern, from a cache. @throws Error for a pattern that is too long or not valid in RE2 */
function patternOf (text: string): RE2JS {
  if (text.length > extensionsLimits.policies.patternLength) throw new Error('a pattern is too long')
  let pattern = patterns.get(text)
  if (pattern === undefined) {
    try {
      pattern = loadPackage('re2js').RE2JS.compile(text)
    } catch (error) {
      throw new Error(`the pattern ${JSON.stringify(text)} is not valid: ${(error as Error).message}`)
    }
    patterns.setNewest(text, pattern)
  }
  return pattern
}

let environment: Environment | undefined

/** Returns the CEL environment. The CEL library is loaded at the first call. */
function loadEnvironment (): Environment {
  if (environment !== undefined) return environment
  const cel = loadPackage('@marcbachmann/cel-js')
  const { syntax: limits } = extensionsLimits.policies
  environment = new cel.Environment({ homogeneousAggregateLiterals: false, limits })
    .registerType('Key', { ctor: KeyFacts, fields: { id: 'string', name: 'string' } })
    .registerType('Principal', {
      ctor: PrincipalFacts,
      fields: {
        username: 'string',
        isAdmin: 'bool',
        teams: 'list<string>',
        key: 'Key',
        address: 'string',
        client: 'string'
      }
    })
    .registerType('Tool', {
      ctor: ItemFacts,
      fields: {
        server: 'string', name: 'string', kind: 'string', annotations: 'map<string, dyn>', tags: 'list<string>'
      }
    })
    .registerVariable('principal', 'Principal')
    .registerVariable('tool', 'Tool')
    .registerVariable('args', 'map<string, dyn>')
    .registerVariable('route', 'string')
    .registerVariable('now', 'google.protobuf.Timestamp')
    .registerFunction(`string.${linearMatches}(string): bool`, (text: string, pattern: string) => {
      if (patterns.get(pattern) === undefined) spendWork(extensionsLimits.policies.patternWork)
      const compiled = patternOf(pattern)
      spendWork(text.length * compiled.programSize() / 50)
      return compiled.test(text)
    })
  return environment
}

const variableNames: ReadonlySet<string> = new Set(['principal', 'tool', 'args', 'route', 'now'])
/** The members of `ToolAnnotations` (MCP). */
const annotations: ReadonlySet<string> =
  new Set(['title', 'readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'])
/** The CEL macros that evaluate an expression for each entry of a list. */
const loops: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'filter', 'map'])

/** The names that a condition uses: of variables, and of members of `principal`. */
interface CollectedNames { readonly variables: Set<string>, readonly members: Set<string>, usesWholePrincipal: boolean }

/**
 * Replaces `matches` in a syntax tree; checks constant patterns, time zones, annotations and the nesting of loops; adds
 * the used names to `names`.
 * @param value a node, or a list of nodes
 * @param depth the number of loops around the value
 * @throws InvalidCondition
 */
function prepareTree (value: unknown, names: CollectedNames, seen: Set<unknown>, depth = 0): void {
  if (typeof value !== 'object' || value === null || seen.has(value)) return
  seen.add(value)
  if (Array.isArray(value)) {
    for (const each of value) prepareTree(each, names, seen, depth)
    return
  }
  const node = value as ASTNode
  if (node.op === 'id' && variableNames.has(node.args)) {
    names.variables.add(node.args)
    if (node.args === 'principal') names.usesWholePrincipal = true
  }
  if (node.op === '.' && node.args[0].op === 'id' && node.args[0].args === 'principal') {
    names.variables.add('principal')
    names.members.add(node.args[1])
    return
  }
  if (node.op === '.') checkAnnotation(node)
  if (node.op === 'rcall') {
    const [name, , [first]] = node.args
    const constant = first?.op === 'value' && typeof first.args === 'string' ? first.args : undefined
    if (first !== undefined && constant !== undefined && name.startsWith('get')) checkTimeZone(constant, first.start)
    if (name === 'matches') {
      if (first !== undefined && constant !== undefined) checkPattern(constant, first.start)
      node.args[0] = linearMatches
    }
  }
  if (node.op === 'rcall' && loops.has(node.args[0])) {
    if (depth === extensionsLimits.policies.loops) {
      throw new InvalidCondition(`more than ${depth} loops are nested`, node.start)
    }
    prepareTree(node.args[1], names, seen, depth)
    prepareTree(node.args[2], names, seen, depth + 1)
  }
  for (const each of Object.values(node)) prepareTree(each, names, seen, depth)
}

/** Rejects an unknown annotation: a misspelled one would make the condition fail, which denies the call. */
function checkAnnotation ({ args: [of, name], start }: ASTNode & { op: '.' }): void {
  const isOfTool = of.op === '.' && of.args[1] === 'annotations' && of.args[0].op === 'id' && of.args[0].args === 'tool'
  if (!isOfTool || annotations.has(name)) return
  const known = [...annotations].join(', ')
  throw new InvalidCondition(
    `MCP has no annotation "${name}", only ${known}; write others as tool.annotations["${name}"]`, start
  )
}

/** Checks a time zone. @param name its name, or an offset from UTC, such as `+02:00` @throws InvalidCondition */
function checkTimeZone (name: string, position: number): void {
  if (/^[+-]?\d\d:\d\d$/.test(name)) return
  try {
    Intl.DateTimeFormat('en', { timeZone: name })
  } catch {
    throw new InvalidCondition(`there is no time zone "${name}"`, position)
  }
}

function checkPattern (text: string, position: number): void {
  try {
    patternOf(text)
  } catch (error) {
    throw new InvalidCondition((error as Error).message, position)
  }
}

function isCelError (error: unknown): error is ParseError | CelTypeError | EvaluationError {
  const cel = loadPackage('@marcbachmann/cel-js')
  return error instanceof cel.ParseError || error instanceof cel.TypeError || error instanceof cel.EvaluationError
}

const messageOf = (error: unknown): string =>
  (isCelError(error) ? error.summary : (error as Error).message).replaceAll(linearMatches, 'matches')

/**
 * Compiles a condition.
 * @throws InvalidCondition if it is not valid CEL, cannot be of type bool, or fails a check of `prepareTree`
 */
export function compileCondition (text: string): Condition {
  const names: CollectedNames = { variables: new Set(), members: new Set(), usesWholePrincipal: false }
  try {
    const parsed = loadEnvironment().parse(text)
    prepareTree(parsed.ast, names, new Set())
    const { valid, type, error } = parsed.check()
    if (!valid) throw error
    if (type !== 'bool' && type !== 'dyn') throw new InvalidCondition(`it must be of type bool, not ${type}`, 0)
    meterNodes(parsed.ast)
    return {
      variables: names.variables,
      principalMembers: names.usesWholePrincipal ? undefined : names.members,
      isTrue: (context) => {
        let value: unknown
        try {
          value = runMetered(() => parsed(context))
        } catch (failure) {
          throw new Error(messageOf(failure))
        }
        if (typeof value !== 'boolean') throw new Error('its value is neither true nor false')
        return value
      }
    }
  } catch (error) {
    if (error instanceof InvalidCondition) throw error
    throw new InvalidCondition(messageOf(error), isCelError(error) ? error.range?.start ?? 0 : 0)
  }
}

/**
 * Converts the arguments of a call to CEL values. Safe integers become the CEL type int.
 * @param args the parsed arguments
 * @param size their size as JSON text, in bytes
 * @throws Error with a clause if the arguments exceed the limits of conditions
 */
export function toCelArguments (args: unknown, size: number): Readonly<Record<string, unknown>> {
  const { argumentsSize } = extensionsLimits.policies
  if (size > argumentsSize) throw new Error(`the arguments are larger than ${argumentsSize / 1_024} KiB`)
  return toCel(args ?? {}, 0) as Record<string, unknown>
}

function toCel (value: unknown, depth: number): unknown {
  const { listLength, argumentsDepth } = extensionsLimits.policies
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value
  if (typeof value !== 'object' || value === null) return value
  if (depth > argumentsDepth) throw new Error(`the arguments are nested deeper than ${argumentsDepth} levels`)
  const names = Object.keys(value)
  if (names.length > listLength) throw new Error(`a list in the arguments has more than ${listLength} entries`)
  if (Array.isArray(value)) return value.map((each) => toCel(each, depth + 1))
  // A Map, since a member may be named `__proto__`.
  const members = new Map<string, unknown>()
  for (const name of names) members.set(name, toCel((value as Record<string, unknown>)[name], depth + 1))
  return members
}
