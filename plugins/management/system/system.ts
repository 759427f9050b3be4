import { isDeepStrictEqual } from 'node:util'
import type { TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import fp from 'fastify-plugin'
import { isObject } from '../../../protocol/json.ts'
import { separatorWarning } from '../../../schemas/names.ts'
import { schemaProblems } from '../../../schemas/problem.ts'
import { withCurrentSmartRoutingNames } from '../../../schemas/smart-routing.ts'
import { SystemSections } from '../../../schemas/system.ts'
import { errors, type Finding, invalidInputError } from '../../base/errors/index.ts'
import { containsMask, maskConfig } from '../../base/secrets/index.ts'
import {
  legacyKeyIgnoredWarning, convertLegacyKey, guestLegacyKeyWarning, legacyKeyConvertedWarning, legacyKeyOwnerAndCreator
} from '../../identity/index.ts'
import { danglingReferenceWarnings, notConnectedSentence, type Principal, type Settings } from '../../settings/index.ts'
import { checkSections, checkMaskedSecretTargets, type ReportInvalidMember } from './checks.ts'

type Json = Record<string, unknown>

/** The members of each section that users without admin rights may see. `true`: a member that is not a section. */
const publicMembers: Readonly<Record<string, true | readonly string[]>> = {
  routing: ['enableGlobalRoute', 'enableGroupNameRoute', 'enableBearerAuth', 'bearerAuthHeaderName', 'skipAuth'],
  install: ['baseUrl'],
  smartRouting: ['enabled'],
  toolResultCompression: ['enabled'],
  oauthServer: ['enabled'],
  nameSeparator: true,
  enableSessionRebuild: true
}

/** Max number of sentences that `problems` returns. */
const maxProblems = 100

/** Manages the system configuration for the management API. */
class System {
  readonly #settings: Settings
  readonly #baseUrl: string | undefined
  readonly #warn: (sentence: string) => void

  /**
   * @param baseUrl BASE_URL, which takes precedence over `install.baseUrl`
   * @param warn logs a warning for the operator
   */
  constructor (settings: Settings, baseUrl: string | undefined, warn: (sentence: string) => void) {
    this.#settings = settings
    this.#baseUrl = baseUrl
    this.#warn = warn
  }

  /**
   * Returns the configuration with defaults and masked secrets; to users without admin rights, only the public members.
   */
  get (principal: Principal): Json {
    const shown = present(this.#settings.current.system)
    if (principal.isAdmin) return shown
    return Object.fromEntries(Object.entries(publicMembers).map(([name, members]): [string, unknown] => {
      const section = shown[name]
      if (members === true) return [name, section]
      return [name, Object.fromEntries(Object.entries(section as Json).filter(([key]) => members.includes(key)))]
    }))
  }

  /**
   * Returns sentences about settings that cannot be used, for admins. Problems of servers are omitted, since the
   * records of the servers contain them.
   */
  problems (): string[] {
    const { current, editProblem, storeProblem: problem } = this.#settings
    const serverProblems = new Set([...current.servers.values()].flatMap((server) =>
      server.problem === undefined ? [] : [notConnectedSentence(server.name, server.problem)]))
    return [
      editProblem ?? problem,
      ...current.problems.filter((each) => !serverProblems.has(each)),
      ...danglingReferenceWarnings(current)
    ].filter((each) => each !== undefined).slice(0, maxProblems)
  }

  /**
   * Changes members of the configuration in one commit. If there are no bearer keys yet, a sent `routing.bearerAuthKey`
   * becomes one (unless a guest sends it).
   * @returns the configuration as in `get`, with warnings
   * @throws InvalidInput
   */
  async update (principal: Principal, body: Json): Promise<{ data: Json, warnings: string[] }> {
    if (Object.keys(body).length === 0) {
      throw new errors.InvalidInput(
        'The body contains no section; the sections are routing, install, smartRouting, toolResultCompression, ' +
        'mcpRouter, nameSeparator, enableSessionRebuild, oauthServer and notifications'
      )
    }
    let warning: string | undefined
    await this.#settings.change(({ system, keys, users }) => {
      // Some clients generate a `bearerAuthKey` when they enable bearer authentication. If keys already exist, it is
      // ignored, since a key with access to everything would be created although nobody has asked for it.
      const hasKeys = keys.size > 0 || system.bearerAuthKeyMigrated === true
      const token = legacyKeyIn(body)
      // A key has the rights of its creator, so a guest cannot create one.
      const isConverted = token !== undefined && !hasKeys && principal.kind !== 'guest'
      if (token !== undefined) {
        warning = isConverted ? legacyKeyConvertedWarning : hasKeys ? legacyKeyIgnoredWarning : guestLegacyKeyWarning
      }
      const sent = replaceFormerNames(isConverted ? body : withoutLegacyKey(body))
      const stored = replaceFormerNames(system)
      const findings: Finding[] = []
      const report = (path: string, message: string): void => { findings.push({ path, message }) }
      const next = merge(stored, sent, present(system), SystemSections, report)
      checkSections(withoutMembers(sent, findings), report)
      if (findings.length > 0) throw invalidInputError(findings)
      checkMaskedSecretTargets(sent, stored, next)
      if (!isConverted) return [{ entity: 'systemConfig', value: next }]
      const key = convertLegacyKey(token, legacyKeyOwnerAndCreator(users, principal))
      const { bearerAuthKey: _, ...routing } = next.routing as Json
      return [
        { entity: 'bearerKeys', key: key.id, value: key },
        { entity: 'systemConfig', value: { ...next, routing, bearerAuthKeyMigrated: true } }
      ]
    }, principal)
    if (warning === legacyKeyConvertedWarning) this.#warn(warning)
    const warnings =
      [warning, separatorWarning(body.nameSeparator), this.#baseUrlWarning(body)].filter((each) => each !== undefined)
    return { data: this.get(principal), warnings }
  }

  /** Returns the warning that BASE_URL overrides a sent `install.baseUrl`; undefined if it does not. */
  #baseUrlWarning ({ install }: Json): string | undefined {
    const sent = isObject(install) ? install.baseUrl : undefined
    if (this.#baseUrl === undefined || typeof sent !== 'string' || sent === this.#baseUrl) return undefined
    return '"install.baseUrl" has no effect while the environment variable BASE_URL is set, which takes precedence'
  }
}

/** Returns the `routing.bearerAuthKey` of a sent configuration; undefined if there is none, or only a mask. */
function legacyKeyIn ({ routing }: Json): string | undefined {
  const key = isObject(routing) ? routing.bearerAuthKey : undefined
  return typeof key === 'string' && key !== '' && !containsMask(key) ? key : undefined
}

function withoutLegacyKey (body: Json): Json {
  if (!isObject(body.routing) || legacyKeyIn(body) === undefined) return body
  const { bearerAuthKey: _, ...routing } = body.routing
  return { ...body, routing }
}

/** Replaces former names of members, which files and clients may still use, by the current names. */
function replaceFormerNames (system: Json): Json {
  const { smartRouting } = system
  return isObject(smartRouting) ? { ...system, smartRouting: withCurrentSmartRoutingNames(smartRouting) } : system
}

/** Returns the configuration as GET returns it to admins: with defaults, and masked secrets. */
function present (system: Json): Json {
  const sections: Json = {
    routing: {},
    install: {},
    smartRouting: {},
    toolResultCompression: {},
    mcpRouter: {},
    oauthServer: {},
    notifications: {}
  }
  const given =
    Object.fromEntries(Object.entries(replaceFormerNames(system)).filter(([, value]) =>
      value !== undefined && value !== null))
  return maskConfig(Value.Default(SystemSections, structuredClone({ ...sections, ...given })) as Json)
}

declare module 'fastify' {
  interface FastifyInstance { system: System }
}

/** Decorates the app with `system`, which manages the system configuration. */
export default fp(async (app) => {
  app.decorate('system', new System(app.settings, app.config.env.BASE_URL, (sentence) => { app.log.warn(sentence) }))
}, { name: 'system', dependencies: ['config', 'settings', 'keys'] })

/** Returns the properties of an object schema; undefined for any other schema. */
const membersOf = (schema: TSchema | undefined): Record<string, TSchema> | undefined =>
  schema?.type === 'object' ? (schema.properties as Record<string, TSchema>) : undefined

/**
 * Merges sent values into the stored ones, also in nested objects: a value replaces the stored one, an absent key
 * changes nothing, and null resets to the default. A value equal to the shown one changes nothing, even if its key is
 * unknown.
 * @param shown the stored values as GET returns them (`present`)
 * @param report called for each unknown key and each invalid value
 * @returns the new values
 */
function merge (stored: Json, sent: Json, shown: Json, schema: TSchema, report: ReportInvalidMember, path = ''): Json {
  const next: Json = { ...stored }
  const members = membersOf(schema) ?? {}
  for (const [key, value] of Object.entries(sent)) {
    const place = path === '' ? key : `${path}.${key}`
    if (Object.hasOwn(shown, key) && isDeepStrictEqual(value, shown[key])) continue
    const known = Object.hasOwn(members, key) ? members[key] : undefined
    if (!known) {
      report(place, 'is not known; the documentation of this route lists the accepted members')
      continue
    }
    if (value === null) {
      delete next[key]
      continue
    }
    if (containsMask(value)) {
      report(place, 'this is a mask, not a value; send the value itself, or leave it out')
      continue
    }
    if (membersOf(known) && isObject(value)) {
      next[key] = merge(objectIn(stored, key), value, objectIn(shown, key), known, report, place)
      continue
    }
    const findings = schemaProblems(known, value)
    for (const each of findings) report(each.path === '' ? place : `${place}.${each.path}`, each.message)
    if (findings.length === 0) next[key] = value
  }
  return next
}

/** Returns a sent configuration without the members about which there are findings. */
function withoutMembers (sent: Json, findings: readonly Finding[]): Json {
  const rest = structuredClone(sent)
  for (const { path } of findings) {
    const [section = '', member] = path.split('.')
    if (member === undefined || !isObject(rest[section])) delete rest[section]
    else delete (rest[section] as Json)[member]
  }
  return rest
}

/** Returns the own member `key` of an object, if the member is an object; otherwise an empty object. */
const objectIn = (value: Json, key: string): Json => {
  const member = Object.hasOwn(value, key) ? value[key] : undefined
  return isObject(member) ? member : {}
}
