import { Type, type TObject } from '@sinclair/typebox'
import { OpenApiConfig } from './openapi-upstream.ts'
import { ItemOverride, ServerConfig, serverTypeOf } from './server.ts'
import { transports } from './transports.ts'
import { isCommentName, isPlainObject, unknownMemberWarnings, unknownMemberWarning } from './unknown-members.ts'
import { UpstreamOAuth } from './upstream-oauth.ts'
import type { ConfigDraft } from './config-translation.ts'

/** Members of other programs that have no effect on the gateway, each with the reason. */
const clientMembers: Readonly<Record<string, string>> = {
  autoApprove: 'whether a call is approved is up to the client that asks',
  alwaysAllow: 'whether a call is approved is up to the client that asks',
  autoAllow: 'whether a call is approved is up to the client that asks',
  trust: 'whether a call is approved is up to the client that asks',
  envFile: 'the file is not read; write its variables into "env", or import it with tool-hub import',
  dev: 'files are not watched; reload the server after a change',
  startup_timeout_sec: 'the time to start is the same for all servers',
  custom_instructions: 'servers have their own instructions; they are not changed',
  headersHelper: 'no program is run to get headers; write them into "headers"'
}

/** The gateway's own members that have no effect on a server, and the reason, by `locatedBy` of the transport. */
const inertMembers = {
  command: {
    reason: 'the server is a command', members: ['url', 'headers', 'passthroughHeaders', 'oauth', 'proxy', 'openapi']
  },
  address: {
    reason: 'the server is remote',
    members: ['command', 'args', 'env', 'cwd', 'startOnDemand', 'idleTimeoutMs', 'openapi']
  },
  description: { reason: 'the server is an OpenAPI description', members: ['command', 'args', 'env', 'cwd'] }
} as const

/** Adds a warning for each of the gateway's own members that has no effect on a server of the config's type. */
export function warnOfIneffectiveMembers ({ config, warnings }: ConfigDraft): void {
  const type = serverTypeOf(config as ServerConfig)
  // A config without a known type will be rejected anyway.
  if (type === undefined || !Object.hasOwn(transports, type)) return
  const { reason, members } = inertMembers[transports[type].locatedBy]
  for (const name of members) {
    const value = config[name]
    const isEmpty = value === undefined || value === null || value === '' || value === false ||
      (typeof value === 'object' && Object.keys(value).length === 0)
    if (!isEmpty) warnings.push(`"${name}" has no effect: ${reason}`)
  }
}

/** The schemas of nested objects that are checked for unknown members as well. */
const nestedSchemas: Readonly<Record<string, TObject>> = { oauth: UpstreamOAuth, openapi: OpenApiConfig }
const nestedMembers: Readonly<Record<string, readonly string[]>> = {
  options: ['timeout', 'resetTimeoutOnProgress', 'maxTotalTimeout'],
  proxy: ['url', 'noProxy'],
  ...Object.fromEntries(Object.entries(nestedSchemas).map(([name, schema]) => [name, Object.keys(schema.properties)]))
}

/**
 * The maps of overrides. They are checked for unknown members as well, since the overrides of other programs have
 * different members.
 */
const overrideSections: readonly string[] = ['tools', 'prompts', 'resources', 'skills']
const Overrides = Type.Record(Type.String(), ItemOverride)

/** Adds a warning for each member that the gateway does not know. */
export function warnOfUnknownMembers ({ config, warnings, mentionedMembers: named }: ConfigDraft): void {
  for (const [name, value] of Object.entries(config)) {
    if (isCommentName(name) || named.has(name)) continue
    if (Object.hasOwn(nestedMembers, name) && isPlainObject(value)) {
      const known = nestedMembers[name] ?? []
      for (const member of Object.keys(value)) {
        if (!known.includes(member) && !isCommentName(member)) {
          warnings.push(unknownMemberWarning(`${name}.${member}`, member, known))
        }
      }
    }
    if (overrideSections.includes(name)) warnings.push(...unknownMemberWarnings(Overrides, value, `${name}.`))
    if (Object.hasOwn(ServerConfig.properties, name)) continue
    const isEmpty = value === false || (Array.isArray(value) && value.length === 0)
    const reason = Object.hasOwn(clientMembers, name) ? clientMembers[name] : undefined
    if (reason === undefined) warnings.push(unknownMemberWarning(name, name, Object.keys(ServerConfig.properties)))
    else if (!isEmpty) warnings.push(`"${name}" has no effect: ${reason}`)
  }
}
