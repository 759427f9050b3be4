import { Type, type Static } from '@sinclair/typebox'

// The entries of an MCP registry (`server.json`, and responses of the registry API v0.1), with the members that are
// used here; others are dropped. The entries are untrusted, so each text, list and map has a limit, which is above the
// limit of the registry API.

const Text = (maxLength = 4_096) => Type.String({ maxLength })
const variableName = '[A-Za-z_][A-Za-z0-9_.-]{0,127}'

const input = {
  description: Type.Optional(Text()),
  isRequired: Type.Optional(Type.Boolean()),
  format: Type.Optional(Text(64)),
  value: Type.Optional(Text()),
  isSecret: Type.Optional(Type.Boolean()),
  default: Type.Optional(Text()),
  placeholder: Type.Optional(Text()),
  choices: Type.Optional(Type.Array(Text(), { maxItems: 500 }))
}
/** A value that is fixed, has a default, or must be filled in by a user. */
export const RegistryInput = Type.Object(input)
export type RegistryInput = Static<typeof RegistryInput>

const variables = Type.Optional(
  Type.Record(
    Type.String({ pattern: `^(?!__proto__$)${variableName}$` }),
    RegistryInput,
    { additionalProperties: false, maxProperties: 100 }
  )
)
/** An input whose `value` may contain variables (`{name}`). `variables` contains an input for each variable. */
export const RegistryInputWithVariables = Type.Object({ ...input, variables })
export type RegistryInputWithVariables = Static<typeof RegistryInputWithVariables>

/** A header, or an environment variable. */
const KeyValueInput = Type.Object({ ...input, variables, name: Text(256) })
type KeyValueInput = Static<typeof KeyValueInput>

/** An argument of a command. Its type is `positional` or `named`; the name of a named argument is its flag. */
export const RegistryArgument = Type.Object({
  ...input,
  variables,
  type: Text(64),
  name: Type.Optional(Text(256)),
  valueHint: Type.Optional(Text(256)),
  isRepeated: Type.Optional(Type.Boolean())
})
export type RegistryArgument = Static<typeof RegistryArgument>

const Values = Type.Optional(Type.Array(KeyValueInput, { maxItems: 200 }))

/**
 * A transport of type `stdio`, `streamable-http` or `sse`. `variables`: the variables in the URL of a remote server.
 */
export const RegistryTransport = Type.Object({ type: Text(64), url: Type.Optional(Text()), headers: Values, variables })
export type RegistryTransport = Static<typeof RegistryTransport>

export const RegistryPackage = Type.Object({
  registryType: Text(64),
  registryBaseUrl: Type.Optional(Text()),
  identifier: Text(1_024),
  version: Type.Optional(Text(256)),
  fileSha256: Type.Optional(Text(64)),
  runtimeHint: Type.Optional(Text(256)),
  transport: RegistryTransport,
  runtimeArguments: Type.Optional(Type.Array(RegistryArgument, { maxItems: 200 })),
  packageArguments: Type.Optional(Type.Array(RegistryArgument, { maxItems: 200 })),
  environmentVariables: Values
})
export type RegistryPackage = Static<typeof RegistryPackage>

const Icon = Type.Object({
  src: Text(2_048),
  mimeType: Type.Optional(Text(64)),
  sizes: Type.Optional(Type.Array(Text(32), { maxItems: 32 })),
  theme: Type.Optional(Text(32))
})

export const ServerJson = Type.Object({
  $schema: Type.Optional(Text(1_024)),
  name: Type.String({ minLength: 3, maxLength: 200, pattern: '^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$' }),
  title: Type.Optional(Text(512)),
  description: Text(),
  version: Text(255),
  websiteUrl: Type.Optional(Text()),
  repository: Type.Optional(
    Type.Object({
      url: Type.Optional(Text()),
      source: Type.Optional(Text(256)),
      id: Type.Optional(Text(256)),
      subfolder: Type.Optional(Text(1_024))
    })
  ),
  icons: Type.Optional(Type.Array(Icon, { maxItems: 50 })),
  packages: Type.Optional(Type.Array(RegistryPackage, { maxItems: 50 })),
  remotes: Type.Optional(Type.Array(RegistryTransport, { maxItems: 50 }))
})
export type ServerJson = Static<typeof ServerJson>

/** The member of `_meta` with the metadata that the registry itself adds to an entry. */
export const officialMetaKey = 'io.modelcontextprotocol.registry/official'
export const RegistryMeta = Type.Object({
  [officialMetaKey]: Type.Optional(
    Type.Object({
      status: Type.Optional(Text(64)),
      statusMessage: Type.Optional(Text()),
      statusChangedAt: Type.Optional(Text(64)),
      publishedAt: Type.Optional(Text(64)),
      updatedAt: Type.Optional(Text(64)),
      isLatest: Type.Optional(Type.Boolean())
    })
  )
})
export type RegistryMeta = Static<typeof RegistryMeta>
