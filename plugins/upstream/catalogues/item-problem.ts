import { Type, type TObject, type TSchema } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import type { ListKind } from '../../../protocol/lists.ts'
import { problemOf } from '../../../schemas/problem.ts'

// What MCP says of the members of items, as far as all of its revisions agree. Clients that check it refuse a whole list for one item that
// is otherwise. Members that MCP does not know, and values that it does not restrict, are not looked at.

const optional = <Schema extends TSchema>(members: Record<string, Schema>): TObject =>
  Type.Object(Object.fromEntries(Object.entries(members).map(([name, schema]) => [name, Type.Optional(schema)])))
const text = Type.String()
const flag = Type.Boolean()
const object = Type.Object({})
const oneOf = (...values: string[]): TSchema => Type.Union(values.map((value) => Type.Literal(value)), { enum: values })

const icon = Type.Composite([
  Type.Object({ src: text }),
  optional<TSchema>({ mimeType: text, sizes: Type.Array(text), theme: oneOf('light', 'dark') })
])
const described = { title: text, description: text, icons: Type.Array(icon), _meta: object }
const annotations = optional<TSchema>({
  audience: Type.Array(oneOf('user', 'assistant')),
  priority: Type.Number({ minimum: 0, maximum: 1 }),
  lastModified: text
})
const resource = Type.Composite([Type.Object({ name: text }), optional<TSchema>({ ...described, mimeType: text, annotations })])
const argument = Type.Composite([Type.Object({ name: text }), optional<TSchema>({ title: text, description: text, required: flag })])

const schemas: Readonly<Record<ListKind, TObject>> = {
  tools: Type.Composite([
    Type.Object({ inputSchema: optional({ type: Type.Literal('object') }) }),
    optional<TSchema>({
      ...described,
      outputSchema: object,
      annotations: optional<TSchema>({ title: text, readOnlyHint: flag, destructiveHint: flag, idempotentHint: flag, openWorldHint: flag }),
      execution: optional({ taskSupport: oneOf('forbidden', 'optional', 'required') })
    })
  ]),
  prompts: optional<TSchema>({ ...described, arguments: Type.Array(argument) }),
  resources: Type.Composite([resource, optional({ size: Type.Number() })]),
  resourceTemplates: resource
}
const compiled = Object.fromEntries(Object.entries(schemas).map(([kind, schema]) => [kind, TypeCompiler.Compile(schema)]))

/** The members of an item of this kind that are looked at. */
export const checkedMembers = (kind: ListKind): readonly string[] => Object.keys(schemas[kind].properties)

/**
 * What is wrong with an item, as a clause; undefined: it is what MCP says.
 * @param item its `checkedMembers`; more may be there
 */
export function itemProblem (kind: ListKind, item: Readonly<Record<string, unknown>>): string | undefined {
  if (compiled[kind]?.Check(item) === true) return undefined
  const { path, message } = problemOf(schemas[kind], item) ?? { path: '', message: 'it is not valid' }
  return path === '' ? message : `${JSON.stringify(path)}: ${message}`
}
