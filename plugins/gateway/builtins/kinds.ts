import {
  NewPrompt, NewResource, type BuiltInPrompt, type BuiltInResource, type PromptRecord, type ResourceRecord
} from '../../../schemas/builtins.ts'
import { reservedNameProblem } from '../../../schemas/names.ts'
import { errors } from '../../base/errors/index.ts'
import type { BuiltInKindDefinition } from './entries.ts'
import { skillUris } from './skill-files.ts'
import { gatewayLimits } from '../limits.ts'

/** Matches control characters, lone surrogates, characters that reorder text, and line and paragraph separators. */
const invisible = /[\p{Cc}\p{Cs}\p{Bidi_Control}\p{Zl}\p{Zp}]/u
/** The suffix of the names that the gateway generates for items whose name is taken. */
const hashSuffix = /_[0-9a-f]{8}$/

const refuse = (place: string, reason: string): never => { throw new errors.InvalidInput(`"${place}" ${reason}`) }

function checkText (place: string, text: string): void {
  if (text.length > gatewayLimits.builtIns.text) {
    refuse(place, `must have at most ${gatewayLimits.builtIns.text} characters`)
  }
}

/** Checks that a name is not reserved for a property that objects inherit, such as `__proto__`. @throws InvalidInput */
function checkNotReserved (place: string, name: string): void {
  const problem = reservedNameProblem(name)
  if (problem !== undefined) refuse(place, problem)
}

function checkName (place: string, name: string): void {
  const { name: longest } = gatewayLimits.builtIns
  if (name.length < 1 || name.length > longest) refuse(place, `must have 1 to ${longest} characters`)
  if (invisible.test(name) || name !== name.trim()) {
    refuse(place, 'must not contain control characters, or begin or end with a space')
  }
  checkNotReserved(place, name)
  if (name !== name.normalize('NFC')) refuse(place, 'must be in Unicode NFC (composed characters)')
}

export const promptKind: BuiltInKindDefinition<BuiltInPrompt, PromptRecord> = {
  list: 'prompts',
  claims: 'prompts',
  noun: 'prompt',
  members: Object.keys(NewPrompt.properties),
  stored: ({ prompts }) => prompts,
  change: (key, value) => ({ entity: 'prompts', key, value }),
  keyOf: ({ name }) => name,
  check: ({ name, template, arguments: declared = [] }) => {
    checkName('name', name)
    if (hashSuffix.test(name)) {
      refuse('name', 'must not end in "_" and eight hexadecimal digits: the gateway generates such names')
    }
    checkText('template', template)
    if (declared.length > gatewayLimits.builtIns.arguments) {
      refuse('arguments', `has more than ${gatewayLimits.builtIns.arguments} entries`)
    }
    const seen = new Set<string>()
    for (const [at, argument] of declared.entries()) {
      const place = `arguments.${at}.name`
      checkName(place, argument.name)
      if (/[{}]/.test(argument.name)) refuse(place, 'must not contain braces')
      if (seen.has(argument.name)) refuse(place, `${JSON.stringify(argument.name)} is listed twice`)
      seen.add(argument.name)
    }
  },
  show: ({ id, name, title, description, template, arguments: declared = [], enabled = true }) =>
    ({ id, name, title, description, template, arguments: declared, enabled })
}

export const resourceKind: BuiltInKindDefinition<BuiltInResource, ResourceRecord> = {
  list: 'resources',
  claims: 'resources',
  noun: 'resource',
  members: Object.keys(NewResource.properties),
  stored: ({ resources }) => resources,
  change: (key, value) => ({ entity: 'resources', key, value }),
  keyOf: ({ uri }) => uri,
  otherKeys: ({ skills }) => [...skills.values()].flatMap(skillUris),
  check: ({ uri, name, content }) => {
    const { uri: longest } = gatewayLimits.builtIns
    if (uri.length > longest) refuse('uri', `must have at most ${longest} characters`)
    if (!/^[a-z][a-z0-9+.-]*:\S+$/i.test(uri) || invisible.test(uri) || !URL.canParse(uri)) {
      refuse('uri', 'must be an absolute URI, such as "note://house/rules"')
    }
    if (name !== undefined && (name.trim() === '' || name.length > longest || invisible.test(name))) {
      refuse('name', `must be a string without control characters, of at most ${longest} characters`)
    }
    if (name !== undefined) checkNotReserved('name', name)
    checkText('content', content)
  },
  show: ({ id, uri, name = uri, description, mimeType, content, enabled = true }) =>
    ({ id, uri, name, description, mimeType, content, enabled })
}
