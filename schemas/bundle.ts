import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

const Text = Type.Optional(Type.String())
const Command = {
  command: Type.String({ minLength: 1 }),
  args: Type.Optional(Type.Array(Type.String())),
  env: Type.Optional(Type.Record(Type.String(), Type.String()))
}

/** A value that the user of a bundle configures (MCPB, `user_config`). */
export const BundleOption = Type.Object({
  type: StringEnum(['string', 'number', 'boolean', 'directory', 'file']),
  title: Text,
  description: Text,
  required: Type.Optional(Type.Boolean()),
  default: Type.Optional(Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Array(Type.String())])),
  multiple: Type.Optional(Type.Boolean()),
  sensitive: Type.Optional(Type.Boolean())
})
export type BundleOption = Static<typeof BundleOption>

/** The supported versions of the MCPB manifest. */
const versions = ['0.1', '0.2', '0.3', '0.4']

/**
 * The members of a bundle's manifest that the gateway uses. Unknown members are kept. Early versions of the format have
 * `dxt_version` instead of `manifest_version`.
 */
export const BundleManifest = Type.Object({
  manifest_version: Type.Optional(StringEnum(versions)),
  dxt_version: Type.Optional(StringEnum(versions)),
  name: Type.String(),
  version: Type.String({ minLength: 1 }),
  display_name: Text,
  description: Text,
  server: Type.Object({
    type: StringEnum(['node', 'python', 'binary', 'uv']),
    entry_point: Type.String({ minLength: 1 }),
    mcp_config: Type.Optional(Type.Object({
      ...Command,
      platform_overrides: Type.Optional(Type.Record(Type.String(), Type.Partial(Type.Object(Command))))
    }, { description: 'The command that starts it. Default for the type `uv`: `uv run` in its folder' }))
  }),
  compatibility: Type.Optional(Type.Object({ platforms: Type.Optional(Type.Array(Type.String())) })),
  user_config: Type.Optional(Type.Record(Type.String(), BundleOption))
})
export type BundleManifest = Static<typeof BundleManifest>

/** A value that must replace `${user_config.<key>}` in the config before the server can run. */
export const RequiredOption = Type.Object({
  key: Type.String(),
  title: Text,
  description: Text,
  type: Type.String({ description: 'string, number, boolean, directory or file' }),
  multiple: Type.Optional(Type.Boolean({
    description: 'Whether several values are possible; each is a separate argument'
  })),
  sensitive: Type.Boolean({ description: 'Whether the value is a secret' }),
  default: Type.Optional(Type.String({ description: 'The masked default of a secret, which is not used' }))
})
export type RequiredOption = Static<typeof RequiredOption>

/** The result of the upload of a bundle. To run the server, the client must send `config` to `POST /api/servers`. */
export const UploadedBundle = Type.Object(
  {
    name: Type.String(),
    config: Type.Object({}, { additionalProperties: true, description: 'The config of a server that runs the bundle' }),
    manifest: Type.Object({}, { additionalProperties: true }),
    required: Type.Array(RequiredOption),
    usedBy: Type.Array(Type.String(), {
      description: 'Servers that already run the bundle. They run the new version once they are reloaded'
    }),
    warnings: Type.Array(Type.String())
  },
  {
    examples: [
      {
        name: 'weather',
        config: {
          type: 'stdio',
          command: 'node',
          args: ['/srv/tool-hub/.tool-hub/bundles/weather/current/server/index.js'],
          // eslint-disable-next-line no-template-curly-in-string
          env: { API_KEY: '${user_config.api_key}' }
        },
        manifest: { manifest_version: '0.3', name: 'weather', version: '1.2.0' },
        required: [{ key: 'api_key', title: 'API key', type: 'string', sensitive: true }],
        usedBy: [],
        warnings: []
      }
    ]
  }
)
export type UploadedBundle = Static<typeof UploadedBundle>
