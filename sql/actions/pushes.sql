-- Deals and decides the pushes whose time has come: see pushes_step(). Returns how many moved.
SELECT pushes_step(clock_timestamp()) AS rows;
