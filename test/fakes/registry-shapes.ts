// What the official registry's own description of its API (v0.1, version 2025-12-01 of the document) says of its answers, in our words:
// what must be there, of which type, and which texts are allowed. The fakes are checked by it, and our schema must take all that it takes.
import { Type, type TSchema } from '@sinclair/typebox'

const text = Type.String()
const maybe = Type.Optional
const oneOf = (...values: string[]): TSchema => Type.Union(values.map((value) => Type.Literal(value)))

const input = {
  description: maybe(text),
  isRequired: maybe(Type.Boolean()),
  format: maybe(oneOf('string', 'number', 'boolean', 'filepath')),
  value: maybe(text),
  isSecret: maybe(Type.Boolean()),
  default: maybe(text),
  placeholder: maybe(text),
  choices: maybe(Type.Array(text))
}
const variables = maybe(Type.Record(text, Type.Object(input)))
const values = maybe(Type.Array(Type.Object({ ...input, variables, name: text })))

const positional = { ...input, variables, type: Type.Literal('positional'), isRepeated: maybe(Type.Boolean()) }
const argument = Type.Union([
  Type.Object({ ...positional, valueHint: text }),
  Type.Object({ ...positional, valueHint: maybe(text), value: text }),
  Type.Object({ ...input, variables, type: Type.Literal('named'), name: text, isRepeated: maybe(Type.Boolean()) })
])

/** An address, or a variable in braces and what follows it. */
const url = Type.String({ pattern: '^(https?://[^\\s]+|\\{[a-zA-Z_][a-zA-Z0-9_]*\\}[^\\s]*)$' })
const http = { type: oneOf('streamable-http', 'sse'), url, headers: values }

const aPackage = Type.Object({
  registryType: text,
  registryBaseUrl: maybe(text),
  identifier: text,
  version: maybe(Type.Intersect([Type.String({ minLength: 1 }), Type.Not(Type.Literal('latest'))])),
  fileSha256: maybe(Type.String({ pattern: '^[a-f0-9]{64}$' })),
  runtimeHint: maybe(text),
  transport: Type.Union([Type.Object({ type: Type.Literal('stdio') }), Type.Object(http)]),
  runtimeArguments: maybe(Type.Array(argument)),
  packageArguments: maybe(Type.Array(argument)),
  environmentVariables: values
})

const icon = Type.Object({
  src: Type.String({ maxLength: 255 }),
  mimeType: maybe(oneOf('image/png', 'image/jpeg', 'image/jpg', 'image/svg+xml', 'image/webp')),
  sizes: maybe(Type.Array(Type.String({ pattern: '^(\\d+x\\d+|any)$' }))),
  theme: maybe(oneOf('light', 'dark'))
})

const server = Type.Object({
  name: Type.String({ minLength: 3, maxLength: 200, pattern: '^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$' }),
  description: Type.String({ minLength: 1, maxLength: 100 }),
  title: maybe(Type.String({ minLength: 1, maxLength: 100 })),
  version: Type.String({ maxLength: 255 }),
  websiteUrl: maybe(text),
  repository: maybe(Type.Object({ url: text, source: text, id: maybe(text), subfolder: maybe(text) })),
  icons: maybe(Type.Array(icon)),
  $schema: maybe(text),
  packages: maybe(Type.Array(aPackage)),
  remotes: maybe(Type.Array(Type.Object({ ...http, variables: maybe(Type.Record(text, Type.Object(input))) }))),
  _meta: maybe(Type.Object({ 'io.modelcontextprotocol.registry/publisher-provided': maybe(Type.Object({})) }))
})

/** An answer to `GET /v0.1/servers/{name}/versions/{version}`, and an entry of a list. */
export const entryShape = Type.Object({
  server,
  _meta: maybe(Type.Object({
    'io.modelcontextprotocol.registry/official': maybe(Type.Object({
      status: maybe(oneOf('active', 'deprecated', 'deleted')),
      statusMessage: maybe(Type.String({ maxLength: 500 })),
      statusChangedAt: maybe(text),
      publishedAt: maybe(text),
      updatedAt: maybe(text),
      isLatest: maybe(Type.Boolean())
    }, { additionalProperties: false }))
  }))
})

interface Parts {
  readonly properties?: Record<string, TSchema>
  readonly patternProperties?: Record<string, TSchema>
  readonly anyOf?: TSchema[]
  readonly items?: TSchema
}

/** The paths of all members that a shape has, such as `server/packages/transport/url`; a `*` stands for any name. */
export function membersOf (shape: TSchema, path = ''): string[] {
  const { properties = {}, patternProperties = {}, anyOf = [], items } = shape as unknown as Parts
  const own = Object.entries(properties).flatMap(([name, schema]) => {
    const member = path === '' ? name : `${path}/${name}`
    return [member, ...membersOf(schema, member)]
  })
  const others = [
    ...[...anyOf, ...items ? [items] : []].flatMap((each) => membersOf(each, path)),
    ...Object.values(patternProperties).flatMap((each) => membersOf(each, `${path}/*`))
  ]
  return [...new Set([...own, ...others])]
}

/** The paths of all members that a value has, in the same form. */
export function pathsIn (value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((each) => pathsIn(each, path))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, each]) => {
    if (path.endsWith('/variables')) return pathsIn(each, `${path}/*`)
    const member = path === '' ? name : `${path}/${name}`
    return [member, ...pathsIn(each, member)]
  })
}
