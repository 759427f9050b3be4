import assert from 'node:assert/strict'
import { CpuBudget, machine, type Meter } from '../../plugins/base/json-schema/time-budget.ts'
import { inputOf, type ToolInput } from '../../plugins/downstream/tools/tool-input.ts'
import type { Catalogue } from '../../protocol/lists.ts'

/**
 * Clocks that a test moves. Work takes no time, unless it goes on for longer than `patience`: then it is stopped, and has taken as much CPU
 * time as its timeout. So traps (regular expressions that never end) are found quickly, and nothing else is stopped on a slow machine.
 */
export class HeldMeter implements Meter {
  time = 0
  /** CPU time that was taken, in ms. */
  taken = 0
  /** How often something was run with a timeout. */
  runs = 0
  patience: number
  /** @param patience in ms: short where all work is a trap */
  constructor (patience = 60_000) { this.patience = patience }
  readonly now = (): number => this.time
  readonly cpuTime = (): number => this.taken
  readonly run = (work: () => void, timeout: number): void => {
    this.runs++
    try {
      machine.run(work, this.patience)
    } catch (error) {
      this.taken += timeout
      throw error
    }
  }
}

export interface ToolInputOptions { meter?: Meter, cpu?: CpuBudget, large?: CpuBudget }

/** The input of a tool with this schema, of a server of its own. */
export function toInput (
  schema: unknown,
  { meter = new HeldMeter(), cpu = new CpuBudget({ meter }), large = new CpuBudget({ meter }) }: ToolInputOptions = {}
): ToolInput {
  const tools = [{ key: 'tool', text: JSON.stringify({ name: 'tool', inputSchema: schema }) }]
  const input = inputOf({ lists: { tools } } as unknown as Catalogue, 'tool', (isLarge) => isLarge ? large : cpu, meter)
  assert.ok(input)
  return input
}

export const pattern = (text: string): object => ({ type: 'string', pattern: text })
/** Each level applies the next one twice to the same value. */
export const doubling = (levels: number): object =>
  levels === 0 ? { type: 'string' } : { allOf: [doubling(levels - 1), doubling(levels - 1)] }

const names = (count: number): string[] => Array.from({ length: count }, (_, n) => `property ${n}`)
const manyProperties = Object.fromEntries(names(400).map((name) => [name, { type: 'string' }]))
const long = 'x'.repeat(25_000)
/** Schemas that cost as much as a known weight allows, with parts of which large arguments are made. */
const heavy: Array<[name: string, schema: object, part: unknown]> = [
  ['an error for each element', { items: { type: 'string' } }, 1],
  ['absent properties', { items: { properties: manyProperties } }, {}],
  ['required properties', { items: { required: names(400) } }, {}],
  ['long alternatives', { items: { enum: [long] } }, 1],
  ['a long name', { properties: { [long]: { items: { type: 'string' } } } }, 1],
  ['many alternatives', { items: { enum: names(2_000) } }, 'property'],
  ['unions', { items: doubling(8) }, 1],
  ['a union of objects', { items: { anyOf: names(50).map((name) => ({ required: [name], properties: { [name]: {} } })) } }, {}],
  ['a pattern', { items: pattern('^[a-z0-9]+x{50}$') }, 'x'.repeat(500)],
  ['unknown names', { items: { additionalProperties: false } }, { a: 1, b: 2, c: 3 }],
  ['texts that are no JSON', { items: { type: ['object', 'array'] } }, '{x}'],
  ['texts as lists', { items: { type: 'array', items: { type: ['integer', 'boolean'] } } }, '1,2,3,4,5,6,7,8,9']
]

/** Heavy schemas as those of tools, with arguments as large as a share of 1 MiB. */
export const heavySchemas = heavy.map(([name, schema, part]) => {
  const [only] = Object.keys((schema as { properties?: object }).properties ?? {})
  const whole = only === undefined ? { type: 'object', properties: { parts: { type: 'array', ...schema } } } : schema
  const most = Math.floor(1024 * 1024 / (JSON.stringify(part).length + 1))
  const argsOf = (share: number): Record<string, unknown> => ({ [only ?? 'parts']: Array.from({ length: Math.ceil(most * share) }, () => part) })
  return { name, schema: whole, argsOf }
})

/** Reads and checks arguments, which may be refused as too large. */
export function use ({ check, read }: ToolInput, args: Record<string, unknown>): void {
  try {
    check(read(args, true))
  } catch (error) {
    assert.match(String(error), /too large to be checked in time/)
  }
}
