import { Type, type TSchema } from '@sinclair/typebox'
import { separatorWarning } from '../schemas/names.ts'
import { isUsablePasswordHash } from '../schemas/password-hash.ts'
import { SystemConfig } from '../schemas/settings.ts'
import { SocialConfig } from '../schemas/social.ts'
import { withCurrentSmartRoutingNames } from '../schemas/smart-routing.ts'
import { SystemSections } from '../schemas/system.ts'
import {
  isCommentName, isPlainObject, quoteName, unknownMemberWarnings, unknownMemberWarning
} from '../schemas/unknown-members.ts'
import type { SettingsDocument } from './apply.ts'
import { entities, entityNames, type ListEntityName } from './entities.ts'
import { inFileCollectionNames } from './records.ts'

/** Max number of warnings that are listed for one section. */
const maxWarnings = 20

/** The members that contain the servers in files of client programs (VS Code, opencode, Zed, Amp, Codex). */
const clientSectionNames: readonly string[] = ['servers', 'mcp', 'context_servers', 'amp.mcpServers', 'mcp_servers']
const clientSectionWarning = (name: string): string =>
  `${quoteName(name)} contains the servers of another program, and has no effect here: tool-hub import <file> adds ` +
  'them; in this file, servers belong in "mcpServers"'

/** The schema of all members of the system configuration that have an effect, at any depth. */
const SystemMembers = Type.Object({
  ...SystemConfig.properties, ...SystemSections.properties, auth: Type.Object({ betterAuth: SocialConfig })
})

/** The names of the sections that a settings document may have. */
const knownSections: readonly string[] = [
  'version', ...entityNames, 'systemConfig', 'oauthClients', ...inFileCollectionNames
]

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0)

/**
 * Returns the first `maxWarnings` warnings; if there are more, followed by a sentence with the number of the others.
 * @param place what the warnings are about; that sentence begins with it
 */
export const truncateWarnings = (warnings: readonly string[], place: string): readonly string[] =>
  warnings.length <= maxWarnings
    ? warnings
    : [...warnings.slice(0, maxWarnings), `${place}: ${warnings.length - maxWarnings} more warnings`]

/** Returns warnings about unknown members of a list entry, and an unusable password. Each warning names the entry. */
export function warningsOfEntry (
  name: ListEntityName, schema: TSchema, entry: Readonly<Record<string, unknown>>
): string[] {
  const { noun, label } = entities[name]
  const entryLabel = entry[label]
  const sentences = [...unknownMemberWarnings(schema, entry), ...name === 'users' ? passwordWarnings(entry) : []]
  const quoted = quoteName(typeof entryLabel === 'string' ? entryLabel : '')
  return sentences.map((sentence) => `${noun} ${quoted}: ${sentence}`)
}

/** Returns a warning about a password that is not a usable hash; none for an account without a password. */
const passwordWarnings = ({ password }: Readonly<Record<string, unknown>>): string[] =>
  typeof password !== 'string' || isUsablePasswordHash(password)
    ? []
    : ['"password" is not a usable hash, so the user cannot log in: tool-hub user reset-password <username> ' +
      'sets a new one']

/**
 * Returns warnings about members of the system configuration that have no effect, and about a name separator that model
 * APIs do not accept.
 */
export function warningsOfSystem (system: unknown): readonly string[] {
  if (!isPlainObject(system)) return []
  const { smartRouting } = system
  const separatorProblem = separatorWarning(system.nameSeparator)
  const named = isPlainObject(smartRouting)
    ? { ...system, smartRouting: withCurrentSmartRoutingNames(smartRouting) }
    : system
  return [
    ...unknownMemberWarnings(SystemMembers, named, 'systemConfig.'),
    ...(separatorProblem === undefined ? [] : [`systemConfig: ${separatorProblem}`])
  ]
}

/** Returns warnings about top-level members of the document that have no effect, such as unknown sections. */
export const warningsOfDocument = (document: SettingsDocument): readonly string[] => truncateWarnings(
  Object.entries(document)
    .filter(([name, value]) => !knownSections.includes(name) && !isCommentName(name) && !isEmpty(value))
    .map(([name, value]) => {
      if (name === 'userConfigs') return `${quoteName(name)} is a member of MCPHub: it is kept, but has no effect`
      return clientSectionNames.includes(name) && typeof value === 'object'
        ? clientSectionWarning(name)
        : unknownMemberWarning(name, name, knownSections)
    }),
  'the settings'
)
