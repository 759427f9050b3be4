import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  limitFormFields, chunkedBodyReserver, createBodyMemoryHook, readBodyText
} from '../../base/body/index.ts'
import { ownerOfAddress } from '../../base/limits/index.ts'
import { chargedOwnerOf, type Principal } from '../../settings/index.ts'
import { managementLimits } from '../limits.ts'

/** Adds a parser of URL-encoded forms, and removes all other parsers. A field that occurs several times is a list. */
export function acceptOnlyFormBodies (scope: FastifyInstance): void {
  const { formSize, keptForm } = managementLimits.console
  const maxFor = ({ principal }: { principal: Principal | null }): number => principal ? formSize : keptForm
  const senderOf = ({ principal, ip }: { principal: Principal | null, ip: string }): string =>
    principal ? chargedOwnerOf(principal, ip) : ownerOfAddress(ip)
  scope.removeAllContentTypeParsers()
  scope.addHook('preParsing', createBodyMemoryHook({ limit: maxFor, ownerOf: senderOf }))
  scope.addContentTypeParser('application/x-www-form-urlencoded', async (
    request: FastifyRequest, payload: FastifyRequest['raw']
  ) => fieldsOf(limitFormFields(await readBodyText(payload, maxFor(request), chunkedBodyReserver(request)))))
}

/** The values of the fields of a submitted form, by name. A field that occurs several times has a list of values. */
export type SubmittedForm = Readonly<Record<string, string | string[] | undefined>>

/** Returns the submitted values that may be shown again: all except credentials and the CSRF token. */
export const valuesToShowAgain = (form: SubmittedForm): SubmittedForm => Object.fromEntries(
  Object.entries(form).filter(([name]) => name !== '_csrf' && !/password|^repeated$|^credential$/i.test(name)))

/** Returns the fields of a form. Line breaks are line feeds, although browsers submit CRLF. */
function fieldsOf (text: string): Record<string, string | string[]> {
  const fields = new Map<string, string | string[]>()
  for (const [name, submitted] of new URLSearchParams(text)) {
    const value = submitted.replaceAll('\r\n', '\n')
    const former = fields.get(name)
    fields.set(name, former === undefined ? value : [former, value].flat())
  }
  return Object.fromEntries(fields)
}
