import type { ProcessExit, ProcessOrder } from '../../../protocol/transports/started-process.ts'

// The protocol between the gateway and its launcher: orders and reports are messages of the IPC channel. Each standard stream of a process
// is a connection of its own, which the launcher opens and the process inherits.

/** A process to be started. `token`, 32 hexadecimal digits, shows that a connection is for one of its streams. */
export interface LaunchOrder extends ProcessOrder { readonly id: number, readonly token: string }

export type LaunchReport =
  | { readonly ready: true }
  | { readonly id: number, readonly pid: number }
  | { readonly id: number, readonly error: { readonly code?: string | undefined, readonly message: string } }
  | { readonly id: number, readonly exit: ProcessExit }

/** The standard streams of a process by their numbers. */
export const streams = [0, 1, 2] as const

/** The header that the launcher sends on the connection of a stream, before any data. */
export const headerOf = (token: string, stream: number): string => `${token}${stream}\n`

/** The size of it, in bytes. */
export const headerSize = 34

/** The address of an abstract socket (unix(7), Linux only): it needs no folder, and is gone with its process. */
export const addressOf = (name: string): string => `\0${name}`
