CREATE TABLE "used_states" (
	"hash" text PRIMARY KEY NOT NULL,
	"answers" text NOT NULL,
	"used" timestamp with time zone DEFAULT now() NOT NULL,
	"expires" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE INDEX "used_states_used" ON "used_states" USING btree ("used");--> statement-breakpoint
CREATE INDEX "used_states_expires" ON "used_states" USING btree ("expires");