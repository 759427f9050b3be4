// A policy that asks before a tool deletes, and its approvals.
import assert from 'node:assert/strict'
import { at, text, type Json } from './client.ts'
import type { InjectedSession } from './inject.ts'
import { addUser, rule } from './policies.ts'

export const asks = rule('Deletions', 'tool.name == "delete"', 'ask')
export const call = { name: 'up-delete', arguments: { id: 7, note: 'a\u202eb\n"c"' } }

/** What a caller of a tool is told. */
export const told = (result: unknown): string => `${at(result, 'isError') === true ? 'error: ' : ''}${text(result)}`

/** The id of the approval that an error names. */
export const idIn = (sentence: string): string => /approval ([0-9a-f-]{36})/.exec(sentence)?.[1] ?? assert.fail(sentence)

/** Calls the tool that deletes. @returns what the caller is told */
export async function callTool (session: InjectedSession, params: Json = call): Promise<string> {
  return told((await session.request('tools/call', params)).result)
}

/** Adds the admin who approves. @returns the headers of its requests */
export const admin = async (opened: Parameters<typeof addUser>[0]): Promise<Record<string, string>> => await addUser(opened, 'eve', { isAdmin: true })
